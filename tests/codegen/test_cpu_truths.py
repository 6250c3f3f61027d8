"""Truths are compared on the CPU: torch's floor_divide of integers does it, and LLVM refused TVM's code."""

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.codegen import cpu

NAMES = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum")


def test_as_numpy_compares_them() -> None:
    x, y = (np.random.default_rng(seed).integers(0, 2, (4, 40)).astype(bool) for seed in (0, 1))
    operands = [relax.Var(name, relax.TensorType((4, 40), "bool")) for name in "xy"]
    builder = relax.BlockBuilder()
    with builder.function("main", operands):
        builder.emit_func_output(relax.Tuple([builder.emit(getattr(relax.op, name)(*operands)) for name in NAMES]))
    with tvm.target.Target("llvm"):
        built = relax.build(cpu.lower(builder.get()), "llvm", relax_pipeline=None)
    found = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y))
    for name, actual in zip(NAMES, found, strict=True):
        np.testing.assert_array_equal(actual.numpy(), getattr(np, name)(x, y), name, strict=True)
