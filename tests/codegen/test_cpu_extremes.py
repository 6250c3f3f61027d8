"""Maxima and minima on the CPU: infinities stay, integers and axes as NumPy has them."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_neuron.codegen import cpu


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
