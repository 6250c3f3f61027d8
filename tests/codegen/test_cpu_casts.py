"""Casts from floats to integers on the CPU, where LLVM would leave open what comes of values out of range."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_neuron.codegen import cpu
from tvm_neuron.runtime.tensors import as_numpy

_FLOATS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
_VALUES = [
    0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, 255.9, -129.0, 300.0, -300.0, 65504.0, 65535.0, -40000.5,
    2.0**24 + 2, 2147483520.0, 2147483648.0, -2147483648.0, 4294967040.0, 2.0**62, 2.0**63, 2.0**63 + 2.0**57,
    2.0**64 - 2.0**41, np.inf, -np.inf, np.nan,
]  # fmt: skip


def _is_in_range(value: float, target: str) -> bool:
    limits = np.iinfo(target)
    return bool(np.isfinite(value) and limits.min <= int(value) <= limits.max)


def _elsewhere(value: float, target: str) -> int:
    """Beyond the range: int32 and int64 end at the last float inside, others take the low bits; NaN becomes 0."""
    if np.isnan(value):
        return 0
    limits, bits = np.iinfo(target), np.iinfo(target).bits
    if target in ("int32", "int64"):
        return int(limits.max if value > 0 else limits.min)
    if not np.isfinite(value):
        return 0
    low = int(value) % 2**bits
    return low - 2**bits if low > limits.max else low


@pytest.mark.parametrize("source", _FLOATS)
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.filterwarnings("ignore:overflow")
def test_cast(source: str, target: str) -> None:
    array = np.array(_VALUES).astype(_FLOATS[source])
    x = relax.Var("x", relax.TensorType(array.shape, source))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.astype(x, target)))
    with tvm.target.Target("llvm"):
        machine = relax.VirtualMachine(tvm.relax.build(cpu.lower(builder.get()), "llvm"), tvm.cpu())
    found = as_numpy(machine["main"](tvm.runtime.tensor(array)))
    for value, got in zip(array.astype(np.float64), found.tolist(), strict=True):
        if _is_in_range(value, target):
            assert got == int(value), value
        elif target in ("int32", "int64"):
            assert abs(got - _elsewhere(value, target)) <= 2.0**-8 * np.iinfo(target).max, value
        elif abs(value) < 2.0**63 or np.isnan(value):
            assert got == _elsewhere(value, target), value
