"""assign: copies an array into a view, in another dtype if need be."""

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native.library import native

Array = NDArray[Any]
IS_BFLOAT16 = {np.dtype(np.float32): 0, np.dtype(ml_dtypes.bfloat16): 1}
FEW_ELEMS = 8192  # NumPy is done with these before a call has begun


def assign(target: Array, source: Array) -> None:
    """target[...] = source, as NumPy has it: broadcast, rounded to the nearest with ties to even.

    Between float32 and bfloat16 it runs on all cores.
    """
    if not any(source.strides):  # one value
        target[...] = source[(0,) * source.ndim].astype(target.dtype)
        return
    library = native()
    kinds = IS_BFLOAT16.get(target.dtype), IS_BFLOAT16.get(source.dtype)
    is_few = target.size < FEW_ELEMS or source.ndim > target.ndim
    if library is None or is_few or None in kinds or np.may_share_memory(target, source):
        target[...] = source
        return
    sizes = (*target.shape, *target.strides, *source.shape, *source.strides)
    is_done = library.tvm_neuron_assign(
        target.ctypes.data, kinds[0], target.ndim, source.ctypes.data, kinds[1], source.ndim,
        (ctypes.c_int64 * len(sizes))(*sizes),
    )  # fmt: skip
    if not is_done:
        target[...] = source  # says what is wrong with the shapes
