"""Maxima and minima on the CPU: infinities stay, integers and axes as NumPy has them."""

import ml_dtypes  # noqa: F401  bfloat16 as a name
import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import ir, relax, te, tirx

from tvm_neuron.codegen import cpu
from tvm_neuron.codegen.cpu.not_a_number import keep_nan


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(("axis", "keepdims"), [([1], True), ([2], False), ([0, 2], False), (None, False)])
def test_reductions(name: str, dtype: str, axis: list[int] | None, keepdims: bool) -> None:
    rng = np.random.default_rng(3)
    array = rng.integers(-100, 100, (2, 3, 64)).astype(dtype)
    if dtype == "float32":
        array[0] = np.inf if name == "min" else -np.inf
    x = relax.Var("x", relax.TensorType((2, 3, 64), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(getattr(relax.op, name)(x, axis, keepdims)))
    with tvm.target.Target("llvm"):
        built = relax.build(cpu.lower(builder.get()), "llvm", relax_pipeline=None)
    found = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(array)).numpy()
    expected = getattr(np, name)(array, axis=None if axis is None else tuple(axis), keepdims=keepdims)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_nan_comes_out(dtype: str) -> None:
    rng = np.random.default_rng(5)
    numbers = (np.where(rng.random((4, 40)) < 0.2, np.nan, rng.standard_normal((4, 40))) for _ in "xy")
    x, y = (array.astype(np.dtype(dtype)) for array in numbers)
    x[0], y[0] = 1, 2  # a row of numbers
    kind = relax.TensorType((4, 40), dtype)
    a, b = relax.Var("a", kind), relax.Var("b", kind)
    builder = relax.BlockBuilder()
    with builder.function("main", [a, b]):
        calls = [
            relax.op.maximum(a, b), relax.op.minimum(a, b), relax.op.nn.relu(a), relax.op.clip(a, -0.5, 0.5),
            relax.op.max(a, 1), relax.op.min(a, 0),
        ]  # fmt: skip
        builder.emit_func_output(relax.Tuple([builder.emit(call) for call in calls]))
    with tvm.target.Target("llvm"):
        built = relax.build(cpu.lower(builder.get()), "llvm", relax_pipeline=None)
    found = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y))
    x, y = x.astype(np.float64), y.astype(np.float64)
    expected = [
        np.maximum(x, y), np.minimum(x, y), np.maximum(x, 0), np.clip(x, -0.5, 0.5), x.max(1), x.min(0),
    ]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.numpy().astype(np.float64), other)


def test_maxima_within_each_other_stay_small() -> None:
    # each operand was written out two or three times: GridSample's reflected positions took 18 s to compile
    x = te.placeholder((40,), "float32", "x")
    value = x[0]
    for number in range(8):
        value = tirx.max(tirx.min(value * 2, x[number]) + 1, x[number])
    kernel = te.create_prim_func([x, te.compute((1,), lambda _i: value, "y")])
    found: list[object] = []
    tvm_ffi.structural_walk(keep_nan(tvm.IRModule({"main": kernel}))["main"], (ir.Call, found.append))
    assert len(found) == 16
