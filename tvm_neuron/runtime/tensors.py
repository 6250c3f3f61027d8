"""NumPy views of TVM tensors, without a copy."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import tvm
import tvm_ffi

_SMALL_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")

_BY_CARRIER = {"bfloat16": ("uint16", np.dtype(ml_dtypes.bfloat16))} | {
    name: ("uint8", np.dtype(getattr(ml_dtypes, name))) for name in _SMALL_FLOATS
}
"""Dtypes that NumPy's DLPack refuses: the integer type that carries their bits, and the NumPy dtype to view it as."""

_ALIGNMENT = 64  # bytes, of every tensor of TVM

CARRIERS = {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8", "float4_e2m1fn": "float8_e4m3fn"}
"""Dtypes narrower than a byte, which no tensor of TVM holds one by one: the type of a byte that holds their values."""


def widened(array: np.ndarray) -> np.ndarray:
    """An array of a dtype narrower than a byte in the type that carries it; any other as it is."""
    carrier = CARRIERS.get(array.dtype.name)
    return array if carrier is None else array.astype(carrier)


def as_numpy(tensor: tvm.runtime.Tensor) -> np.ndarray:
    """The memory of `tensor` (on the CPU) as an array; writing to one writes to the other."""
    carrier = _BY_CARRIER.get(str(tensor.dtype))
    if carrier is None:
        return np.from_dlpack(tensor)
    bits, dtype = carrier
    return np.from_dlpack(tensor._create_view(tuple(tensor.shape), bits)).view(dtype)


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array without values, which `shared` takes without a copy."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


def shared(array: np.ndarray) -> tvm.runtime.Tensor:
    """A tensor with the values of `array`, in its memory where TVM takes that."""
    is_plain = array.flags.c_contiguous and array.flags.writeable and array.dtype.kind == "f"
    if is_plain and array.size and not array.ctypes.data % _ALIGNMENT:
        return tvm.runtime.from_dlpack(array)
    return tvm.runtime.tensor(array)


def as_tensor(value: Any) -> tvm.runtime.Tensor:
    """An output as a tensor: a shape, which Relax keeps apart from tensors, becomes an int64 vector."""
    return tvm.runtime.tensor(np.array(list(value), np.int64)) if isinstance(value, tvm_ffi.Shape) else value
