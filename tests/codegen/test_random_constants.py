"""Every constant that is computed at compile time, by the importer or by the code generator, is onnxruntime's."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.codegen.constants.chain import RandomConstants, run_node
from tests.codegen.constants.drawing import Array
from tvm_neuron import relay
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.passes.fold import fold_constants
from tvm_neuron.errors import NeuronError
from tvm_neuron.frontend.normalize import normalize
from tvm_neuron.frontend.onnx import importer

# A few roundings of float32, in which engines and so the code generator compute; float16 is rounded once more.
TOLERANCES = {"float16": 2.0**-9, "float32": 2.0**-15, "float64": 2.0**-15}


def folded(model: onnx.ModelProto) -> dict[str, Array] | None:
    """The outputs of a model without inputs; None if a part of it runs on the CPU."""
    try:
        mod, params = relay.frontend.from_onnx(model)
        graph = legalise(normalize(mod, params)["main"])
        fold_constants(graph)
    except NeuronError:
        return None
    found = {}
    for output in graph.outputs:
        (block,) = graph.writers(output)
        (source,) = block.sources()
        assert source.value is not None
        found[output.name] = source.value
    return found


def is_near(found: Array, exact: Array) -> bool:
    tolerance = TOLERANCES.get(exact.dtype.name, 0)
    a, b = (value.astype(np.float64) if tolerance else value for value in (found, exact))
    if not tolerance:
        return bool(np.array_equal(a, b))
    least = 1 if exact.dtype == np.float16 else 1e-3  # in float16, exp(x) + 1 and the like are rounded on the way
    scale = np.abs(b[np.isfinite(b)]).max(initial=least)  # what is summed up loses digits of the largest
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * min(scale, 1e3), equal_nan=True))


def check(seeds: range, steps: int) -> Counter[str]:
    """Each operator by itself, on the operands that we made; how many there were of each."""
    checked: Counter[str] = Counter()
    for seed in seeds:
        constants = RandomConstants(seed, steps)
        found = folded(constants.model())
        if found is None:
            continue
        values = constants.constants | found
        for step in constants.steps:
            exact = run_node(step.node, {name: values[name] for name in step.node.input if name}, constants.opset)
            assert exact is not None
            for name, value in exact.items():
                where = f"{step.node.op_type} of seed {seed}, opset {constants.opset}"
                assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), where
                assert is_near(found[name], value), where
            checked[step.node.op_type] += 1
    return checked


@pytest.fixture(params=["importer", "code generator"])
def _by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who computes them: what the importer leaves is for the code generator."""
    if request.param == "code generator":
        monkeypatch.setattr(importer, "is_evaluated", lambda *_: False)


@pytest.mark.usefixtures("_by")
def test_operators() -> None:
    checked = check(range(100), 1)
    assert checked.total() > 80
    assert len(checked) > 30


@pytest.mark.usefixtures("_by")
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("op", ["Max", "Min", "Less", "GreaterOrEqual"])
def test_integers_at_the_ends_of_their_dtype(dtype: str, op: str) -> None:
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.max, 0, -1, 65535, limits.max - 70000, -65537], dtype)
    _same(helper.make_node(op, ["a", "b"], ["y"]), {"a": ends[:, None], "b": ends})


@pytest.mark.usefixtures("_by")
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("source", ["uint16", "uint32", "uint64", "int64"])
def test_casts_of_wide_integers(source: str, target: str) -> None:
    limits = np.iinfo(source)
    ends = np.array([limits.min, limits.max, 0, 1, limits.max // 3, limits.max // 2 + 1], source)
    _same(helper.make_node("Cast", ["a"], ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype(target))), {"a": ends})


def _same(node: onnx.NodeProto, operands: dict[str, Array]) -> None:
    wanted = run_node(node, operands, 18)
    assert wanted is not None
    nodes = []
    for name, value in operands.items():  # in two parts, since a constant alone may be cast as it is imported
        parts = {f"{name}0": value[:2], f"{name}1": value[2:]}
        nodes += [helper.make_node("Constant", [], [k], value=numpy_helper.from_array(v)) for k, v in parts.items()]
        nodes.append(helper.make_node("Concat", list(parts), [name], axis=0))
    infos = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in wanted.items()
    ]
    graph = helper.make_graph([*nodes, node], "constants", [], infos)
    found = folded(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    assert found is not None
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, strict=True)


@pytest.mark.usefixtures("_by")
def test_chains() -> None:
    assert check(range(1000, 1050), 5).total() > 100

