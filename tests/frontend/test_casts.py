"""ONNX's Cast and CastLike of floats to integers: one operator each, on the core, with onnxruntime's results."""

import numpy as np
import pytest
import tvm
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import relay

# in 16 bits and fewer the low bits, whatever the value; beyond int32 and int64 ONNX leaves the result open
_WILD = [np.nan, np.inf, -np.inf, 1e20, -1e20, 70000.7, -70000.7, 2.0**24 + 10, -(2.0**25) - 4]


@pytest.mark.parametrize("op", ["Cast", "CastLike"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_float_to_integer(op: str, dtype: str) -> None:
    values = (np.random.default_rng(1).standard_normal((6, 40)) * 300).astype(np.float32)
    if dtype in ("int8", "uint8", "int16"):
        values[0, : len(_WILD)] = _WILD
    if op == "Cast":
        attrs = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
        model = make_model([helper.make_node("Cast", ["x"], ["y"], name="cast", **attrs)], {"x": values.shape}, ["y"])
    else:
        node = helper.make_node("CastLike", ["x", "like"], ["y"], name="cast")
        model = make_model([node], {"x": values.shape}, ["y"], {"like": np.zeros(1, dtype)}, opset=19)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    (row,) = tvm_neuron.report(library).placement
    assert row.where == "neuroncore", row
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(x=values)
    found = executor.get_output(0).numpy()
    (wanted,) = reference(model, {"x": values})
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_a_cast_to_what_no_engine_has_says_so() -> None:
    model = make_model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.UINT32)], {"x": (3,)}, ["y"])
    mod, params = relay.frontend.from_onnx(model)
    (row,) = tvm_neuron.report(relay.build(mod, target="neuron", params=params)).placement
    assert row.reason == (
        "Operators there have no floats of 64 or 8 bits and no unsigned integers of more than 8; "
        "astype has uint32"
    )
