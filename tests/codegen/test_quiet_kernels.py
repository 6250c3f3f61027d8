"""Builds that write nothing on stderr, where TVM's kernels warn a user of what is right."""

import numpy as np
import onnx
import pytest
import tvm

from tests.onnx_models import reference
from tvm_neuron import BuildOptions, relay

_HEAD = '<ir_version: 10, opset_import: ["": 19]> g'
_MODELS = {
    "gather": "(float[50, 8] x, int64[4] i) => (float[4, 8] y) { y = Gather(x, i) }",
    "gather of columns": "(float[5, 80] x, int64[2, 2] i) => (float[5, 2, 2] y) { y = Gather<axis: int = -1>(x, i) }",
    "one row": "(float[50, 8] x, int64 i) => (float[8] y) { y = Gather(x, i) }",
    "cubes": "(float[5, 8] x) => (float[5, 8] y) <float three = {3}> { y = Pow(x, three) }",
    "narrow": "(float16[5, 8] x) => (float16[5, 8] y) <float16 four = {4}> { y = Pow(x, four) }",
    "of a number": "(float[5, 8] x) => (float[5, 8] y) <float c = {3.5}> { high = Pow(c, c)  y = Add(x, high) }",
    "windows": "(float[1, 3, 4, 4] x) => (float[1, 3, 3, 3] y)"
    " { y = LpPool<kernel_shape: ints = [2, 2], p: int = 3>(x) }",
    "updates": "(float[5, 8] x, int64[2, 8] i, float[2, 8] u) => (float[5, 8] y) { y = ScatterElements(x, i, u) }",
    "updated rows": "(float[5, 8] x, int64[2, 1] i, float[2, 8] u) => (float[5, 8] y) { y = ScatterND(x, i, u) }",
    "channels": "(float[1, 3, 4, 4] x) => (float[1, 3, 4, 4] y) { y = LRN<size: int = 3, beta: float = 4.0>(x) }",
}


@pytest.mark.filterwarnings("ignore::tvm_neuron.errors.PlacementWarning")
@pytest.mark.parametrize("on_cpu", [(), ("*",)], ids=["core", "cpu"])
@pytest.mark.parametrize("name", _MODELS)
def test_nothing_is_said(name: str, on_cpu: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    model = onnx.parser.parse_model(_HEAD + _MODELS[name])
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(fp32_cast="none", on_cpu=on_cpu)
    library = relay.build(mod, target="neuron", params=params, options=options)
    assert capfd.readouterr().err == ""
    _check(library, model)


@pytest.mark.parametrize("axis", [None, 1])
def test_nothing_is_said_of_takes(axis: int | None, capfd: pytest.CaptureFixture[str]) -> None:
    x, i = relay.var("x", shape=(5, 8)), relay.var("i", shape=(3,), dtype="int32")
    func = relay.Function([x, i], relay.take(x, i, axis=axis, mode="fast"))
    options = BuildOptions(on_cpu=("*",))
    library = relay.build(tvm.IRModule.from_expr(func), target="neuron", options=options)
    assert capfd.readouterr().err == ""
    data, positions = np.arange(40, dtype=np.float32).reshape(5, 8), np.array([4, 0, 3], np.int32)
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=data, i=positions)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), data.take(positions, axis))


def _check(library: object, model: onnx.ModelProto) -> None:
    rng = np.random.default_rng(0)
    feeds = {}
    for given in model.graph.input:
        shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        feeds[given.name] = np.asarray(rng.uniform(0.5, 4, shape)).astype(dtype)
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**feeds)
    np.testing.assert_allclose(executor.get_output(0).numpy(), reference(model, feeds)[0], rtol=2e-3)
