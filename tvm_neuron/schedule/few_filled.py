"""few_filled: large arrays of zeros that take memory only where they are written, as block diagonals are."""

import mmap
import sys
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_ROWS = 128  # looked through at once


def few_filled(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros of which only the pages that are written take memory.

    NumPy asks for pages of 2 MB for large arrays, each of which one number fills.
    """
    if sys.platform != "linux":
        return np.zeros(shape, dtype)
    size = max(1, prod(shape) * np.dtype(dtype).itemsize)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # of shared ones, reading takes memory, too
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype, prod(shape)).reshape(shape)


def where_filled(weights: NDArray[Any]) -> NDArray[np.bool_]:
    """Where weights [K, *steps, M] are not zero, as an array of few that are filled: a channel's steps lie together."""
    apart = np.moveaxis(weights, -1, 1)
    found = few_filled(apart.shape, np.bool_)
    for start in range(0, len(apart), _ROWS):
        found[start : start + _ROWS][np.nonzero(apart[start : start + _ROWS] != 0)] = True
    return np.moveaxis(found, 1, -1)
