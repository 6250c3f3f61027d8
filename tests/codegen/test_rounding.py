"""What a model rounds to a narrower float and widens again is rounded: four times it has the narrower one's digits."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, relay

X = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32) * 3
W = np.random.default_rng(1).standard_normal((8, 8, 1, 1)).astype(np.float32)
DTYPES = {TensorProto.FLOAT16: np.dtype(np.float16), TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16)}
NODE = helper.make_node
BEFORE = {
    "input": NODE("Identity", ["x"], ["a"]),
    "arithmetic": NODE("Exp", ["x"], ["a"]),
    "product": NODE("Conv", ["x", "w"], ["a"]),
    "reduction": NODE("ReduceSum", ["x", "axes"], ["a"]),
    "move": NODE("Transpose", ["x"], ["a"], perm=[0, 2, 1, 3]),
}
AMID = {"nothing": NODE("Identity", ["b"], ["c"]), "move": NODE("Transpose", ["b"], ["c"], perm=[0, 3, 1, 2])}


def model_of(before: str, amid: str, dtype: int) -> onnx.ModelProto:
    nodes = [
        BEFORE[before],
        NODE("Cast", ["a"], ["b"], to=dtype),
        AMID[amid],
        NODE("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
        NODE("Mul", ["d", "four"], ["y"]),
    ]
    constants = {"w": W, "axes": np.array([2]), "four": np.float32(4)}
    return make_model(nodes, {"x": X.shape}, ["y"], constants)


@pytest.mark.parametrize("amid", AMID)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_rounding_in_the_model_is_done(before: str, amid: str, dtype: int) -> None:
    mod, params = relay.frontend.from_onnx(model_of(before, amid, dtype))
    library = relay.build(mod, target="neuron/inf2", params=params, options=BuildOptions(fp32_cast="none"))
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=X)
    found = executor.get_output(0).numpy()
    assert found.std() > 1
    np.testing.assert_array_equal(found, found.astype(DTYPES[dtype]).astype(np.float32))
