"""NumPy views of TVM tensors, without a copy."""

from typing import Any

import ml_dtypes
import numpy as np
import tvm
import tvm_ffi

_BY_CARRIER = {"bfloat16": ("uint16", np.dtype(ml_dtypes.bfloat16))}
"""Dtypes that NumPy's DLPack refuses: the integer type that carries their bits, and the NumPy dtype to view it as."""


def as_numpy(tensor: tvm.runtime.Tensor) -> np.ndarray:
    """The memory of `tensor` (on the CPU) as an array; writing to one writes to the other."""
    carrier = _BY_CARRIER.get(str(tensor.dtype))
    if carrier is None:
        return np.from_dlpack(tensor)
    bits, dtype = carrier
    return np.from_dlpack(tensor._create_view(tuple(tensor.shape), bits)).view(dtype)


def as_tensor(value: Any) -> tvm.runtime.Tensor:
    """An output as a tensor: a shape, which Relax keeps apart from tensors, becomes an int64 vector."""
    return tvm.runtime.tensor(np.array(list(value), np.int64)) if isinstance(value, tvm_ffi.Shape) else value
