"""Running sums of long axes and of truth values, and running products, beside NumPy in float64."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.codegen.on_core import on_core
from tests.onnx_models import make_model

FEW = 2.0**-19  # of the largest result: what some hundred float32 additions of either sign round off
MULTIPLIED = 2.0**-7  # where the PE array sums, which reads bfloat16


def running(op: str, shape: tuple[int, ...], axis: int, dtype: int, **flags: int) -> onnx.ModelProto:
    node = helper.make_node(op, ["x", "axis"], ["y"], **flags)
    return make_model([node], {"x": shape}, ["y"], {"axis": np.array(axis)}, 26, dtype)


def wanted(op: str, x: np.ndarray, axis: int, exclusive: int = 0, reverse: int = 0) -> np.ndarray:
    x = np.flip(x.astype(np.float64), axis) if reverse else x.astype(np.float64)
    found = np.cumsum(x, axis) if op == "CumSum" else np.cumprod(x, axis)
    if exclusive:
        found = found - x if op == "CumSum" else found / x
    return np.flip(found, axis) if reverse else found


@pytest.mark.parametrize(
    ("shape", "axis", "flags", "rounding"),
    [
        ((130, 2500), 1, {}, FEW),
        ((3, 5000), 1, {"exclusive": 1}, FEW),
        ((2100, 6), 0, {"reverse": 1}, MULTIPLIED),
        ((2, 2999), -1, {"reverse": 1, "exclusive": 1}, MULTIPLIED),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sums_of_long_axes(
    shape: tuple[int, ...], axis: int, flags: dict[str, int], rounding: float, dtype: type
) -> None:
    x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)
    model = running("CumSum", shape, axis, helper.np_dtype_to_tensor_dtype(x.dtype), **flags)
    found, exact = on_core(model, {"x": x}, "inf2")[0], wanted("CumSum", x, axis, **flags)
    assert found.dtype == dtype
    assert np.abs(found - exact).max() < max(rounding, float(np.finfo(dtype).eps)) * np.abs(exact).max()


@pytest.mark.parametrize(
    ("shape", "axis", "flags"),
    [
        ((128, 200), 1, {}),
        ((3, 50), 0, {"exclusive": 1}),
        ((40, 60), -1, {"reverse": 1}),
        ((2, 49), 1, {"reverse": 1, "exclusive": 1}),
        ((7, 1), 1, {}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_products(shape: tuple[int, ...], axis: int, flags: dict[str, int], dtype: type) -> None:
    x = np.random.default_rng(sum(shape)).uniform(0.9, 1.1, shape).astype(dtype)
    model = running("CumProd", shape, axis, helper.np_dtype_to_tensor_dtype(x.dtype), **flags)
    found, exact = on_core(model, {"x": x}, "inf2")[0], wanted("CumProd", x, axis, **flags)
    assert found.dtype == dtype
    assert np.abs(found - exact).max() <= max(FEW, float(np.finfo(dtype).eps)) * np.abs(exact).max()


@pytest.mark.parametrize(
    ("dtype", "shape", "to"),
    [
        (np.bool_, (4, 512), TensorProto.INT64),
        (np.uint8, (1, 3000), TensorProto.INT32),
        (np.int8, (128, 512), TensorProto.INT32),
    ],
)
def test_counts_are_exact(dtype: type, shape: tuple[int, ...], to: int) -> None:
    """Truth values (the positions of tokens that are no padding) and whole numbers of 8 bits, of any size."""
    rng = np.random.default_rng(5)
    limits = np.iinfo(dtype) if dtype is not np.bool_ else None
    x = rng.integers(limits.min, limits.max + 1, shape).astype(dtype) if limits else rng.random(shape) < 0.7
    nodes = [helper.make_node("Cast", ["x"], ["c"], to=to), helper.make_node("CumSum", ["c", "axis"], ["y"])]
    model = make_model(nodes, {"x": shape}, ["y"], {"axis": np.array(1)}, 18, helper.np_dtype_to_tensor_dtype(x.dtype))
    found = on_core(model, {"x": x}, "inf2")[0]
    assert np.array_equal(found, np.cumsum(x, 1, dtype=np.int64))
