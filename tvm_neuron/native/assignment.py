"""assign: copies an array into a view, in another dtype if need be."""

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native.library import native
from tvm_neuron.native.tape import call, is_recording, leave_out

Array = NDArray[Any]
IS_BFLOAT16 = {np.dtype(np.float32): 0, np.dtype(ml_dtypes.bfloat16): 1}
FEW_ELEMS = 8192  # NumPy is done with these before a call has begun


def assign(target: Array, source: Array) -> None:
    """target[...] = source, as NumPy has it: broadcast, rounded to the nearest with ties to even.

    Between float32 and bfloat16 it runs on all cores.
    """
    kinds = IS_BFLOAT16.get(target.dtype), IS_BFLOAT16.get(source.dtype)
    is_few = (target.size < FEW_ELEMS and not is_recording()) or source.ndim > target.ndim
    is_simple = is_few or not any(source.strides)  # the same value everywhere
    if native() is None or is_simple or None in kinds or np.may_share_memory(target, source):
        _assign_by_numpy(target, source)
        return
    sizes = (*target.shape, *target.strides, *source.shape, *source.strides)
    is_done = call(
        "assign",
        target.ctypes.data, kinds[0], target.ndim, source.ctypes.data, kinds[1], source.ndim,
        (ctypes.c_int64 * len(sizes))(*sizes),
    )  # fmt: skip
    if not is_done:
        _assign_by_numpy(target, source)  # says what is wrong with the shapes


def _assign_by_numpy(target: Array, source: Array) -> None:
    leave_out()
    is_one_value = not any(source.strides)  # rounded once
    target[...] = source[(0,) * source.ndim].astype(target.dtype) if is_one_value else source
