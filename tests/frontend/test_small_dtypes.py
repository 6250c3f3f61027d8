"""Dtypes of up to eight bits: every value of them, every float16 rounded to them, and quantisation with them."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import graph_executor
from tvm_neuron.runtime.tensors import widened

FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")


def made(node: onnx.NodeProto, inputs: dict[str, np.ndarray], output: int) -> onnx.ModelProto:
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", output, None)
    graph = helper.make_graph([node], "g", values, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])


def run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> np.ndarray:
    mod, params = relay.frontend.from_onnx(model)
    executor = graph_executor.GraphModule(relay.build(mod, target="neuron", params=params)["default"]())
    executor.run(**inputs)
    return np.asarray(executor.get_output(0).numpy())


def cast(array: np.ndarray, to: str, **attributes: Any) -> np.ndarray:
    elem_type = getattr(TensorProto, to)
    node = helper.make_node("Cast", ["x"], ["y"], to=elem_type, **attributes)
    return run(made(node, {"x": array}, elem_type), {"x": array})


@pytest.mark.parametrize("dtype", [*FLOAT8, "FLOAT8E8M0"])
def test_all_codes_are_read(dtype: str) -> None:
    numpy_dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype))
    codes = np.arange(256, dtype=np.uint8).view(numpy_dtype)
    np.testing.assert_array_equal(cast(codes, "FLOAT"), codes.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_all_float16_are_rounded_to_the_same_bits(dtype: str, saturate: int) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numpy_dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype))
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float32)
        expected = numpy_helper.saturate_cast(wide, numpy_dtype) if saturate else wide.astype(numpy_dtype)
    actual = cast(values, dtype, saturate=saturate)
    is_number = ~np.isnan(values)
    np.testing.assert_array_equal(actual.view(np.uint8)[is_number], expected.view(np.uint8)[is_number])
    assert np.isnan(actual[~is_number].astype(np.float32)).all()


@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_powers_of_two_are_rounded_as_asked(round_mode: str) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 31, 4096, np.int32).view(np.float32)
    values[:4] = (0.0, np.inf, 1.5, np.finfo(np.float32).max)
    expected = numpy_helper.to_float8e8m0(values, True, round_mode)
    actual = cast(values, "FLOAT8E8M0", round_mode=round_mode)
    np.testing.assert_array_equal(actual.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("dtype", ["INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1"])
def test_less_than_a_byte_travels_in_a_byte(dtype: str) -> None:
    numpy_dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype))
    values = np.linspace(-9, 9, 289, dtype=np.float32)
    expected = values.astype(numpy_dtype)
    np.testing.assert_array_equal(cast(values, dtype), widened(expected))
    np.testing.assert_array_equal(cast(expected, "FLOAT"), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", ["UINT8", "INT16", "INT4", "UINT2", "FLOAT8E4M3FN", "FLOAT4E2M1"])
@pytest.mark.parametrize(("scale_shape", "attributes"), [((), {}), ((6,), {"axis": 1}), ((4, 2), {"block_size": 3})])
def test_quantised_and_back(dtype: str, scale_shape: tuple[int, ...], attributes: dict[str, int]) -> None:
    elem_type, rng = getattr(TensorProto, dtype), np.random.default_rng(5)
    numpy_dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    x = rng.normal(0, 3, (4, 6)).astype(np.float32)
    scale = rng.uniform(0.2, 1, scale_shape).astype(np.float32)
    point = np.zeros(scale_shape) if "FLOAT" in dtype else rng.integers(0, 2, scale_shape)
    inputs = {"x": x, "s": scale, "z": np.asarray(point).astype(numpy_dtype)}
    model = made(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **attributes), inputs, elem_type)
    quantised = ReferenceEvaluator(model).run(None, inputs)[0]
    np.testing.assert_array_equal(run(model, inputs), widened(quantised))

    inputs["x"] = quantised
    model = made(helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], **attributes), inputs, TensorProto.FLOAT)
    np.testing.assert_array_equal(run(model, inputs), ReferenceEvaluator(model).run(None, inputs)[0])


def test_arithmetic_below_a_byte_is_refused() -> None:
    x = np.zeros(3, ml_dtypes.int4)
    with pytest.raises(ModelError, match=r"operator 'Add_0' \(Add\) can't be imported: it takes int4, which Cast, "):
        relay.frontend.from_onnx(made(helper.make_node("Add", ["x", "x"], ["y"]), {"x": x}, TensorProto.INT4))


def test_float64_is_not_rounded_twice() -> None:
    with pytest.raises(ModelError, match="float64 to float8_e5m2 would be rounded twice; cast to float32 in the model"):
        cast(np.zeros(3), "FLOAT8E5M2")
