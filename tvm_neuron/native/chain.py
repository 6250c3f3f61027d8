"""run_chain: elementwise operations one after the other, in one pass over memory."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native.assignment import IS_BFLOAT16
from tvm_neuron.native.library import native

Array = NDArray[Any]
OPERATIONS = ("add", "subtract", "multiply", "divide", "max", "min")  # as numbered in chain.cc
_NUMBERS = {name: number for number, name in enumerate(OPERATIONS)}


def is_chained(dtype: np.dtype) -> bool:
    """Whether arrays of this dtype can be part of a chain."""
    return dtype in IS_BFLOAT16


def run_chain(target: Array, source: Array, steps: Sequence[tuple[str, Array]]) -> None:
    """target[...] = (source op operand) op operand ..., each in float32 as NumPy has it, the last result rounded.

    There are at most 32 steps, all of `OPERATIONS`, all arrays `is_chained`, and the library is there. Sources are
    repeated along axes of size 1 and missing ones. The target shares no byte with them, or is the very place.
    """
    library = native()
    assert library is not None
    arrays = (target, source, *(operand for _, operand in steps))
    sizes = list(target.shape)
    for array in arrays:
        sizes += _strides(array, target.shape)
    library.tvm_neuron_chain(
        (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)),
        (ctypes.c_int * len(arrays))(*(IS_BFLOAT16[array.dtype] for array in arrays)),
        len(arrays),
        (ctypes.c_int * len(steps))(*(_NUMBERS[name] for name, _ in steps)),
        target.ndim,
        (ctypes.c_int64 * len(sizes))(*sizes),
    )


def _strides(array: Array, shape: tuple[int, ...]) -> list[int]:
    """The steps in bytes from one element of `shape` to the next."""
    missing = len(shape) - array.ndim
    found = [0] * missing
    for count, stride, wanted in zip(array.shape, array.strides, shape[missing:], strict=True):
        if count not in (1, wanted):
            raise ValueError(f"{list(array.shape)} can't be repeated to {list(shape)}")
        found.append(stride if count > 1 else 0)
    return found
