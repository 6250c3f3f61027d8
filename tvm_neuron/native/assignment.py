"""assign: copies an array into a view, in another dtype if need be."""

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native.library import native

Array = NDArray[Any]
_IS_BFLOAT16 = {np.dtype(np.float32): 0, np.dtype(ml_dtypes.bfloat16): 1}
_FEW_ELEMS = 2048  # NumPy has copied these before a call has begun


def assign(target: Array, source: Array) -> None:
    """target[...] = source, as NumPy has it: broadcast, rounded to the nearest with ties to even.

    Between float32 and bfloat16 it runs on all cores.
    """
    library = native()
    kinds = _IS_BFLOAT16.get(target.dtype), _IS_BFLOAT16.get(source.dtype)
    shape, missing = target.shape, target.ndim - source.ndim
    fits = missing >= 0 and all(map(_fits, source.shape, shape[missing:]))  # NumPy says what is wrong otherwise
    if library is None or target.size < _FEW_ELEMS or None in kinds or not fits or np.may_share_memory(target, source):
        target[...] = source
        return
    steps = [step if count > 1 else 0 for count, step in zip(source.shape, source.strides, strict=True)]
    sizes = ctypes.c_int64 * len(shape)
    library.tvm_neuron_assign(
        *(target.ctypes.data, kinds[0], sizes(*target.strides), source.ctypes.data, kinds[1]),
        *(sizes(*(0 for _ in range(missing)), *steps), len(shape), sizes(*shape)),
    )


def _fits(count: int, wanted: int) -> bool:
    return count in (1, wanted)
