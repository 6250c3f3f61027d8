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
    depth, *steps, width = weights.shape
    apart = few_filled((depth, width, *steps), np.bool_)
    by_step = apart.reshape(depth, width, -1)
    for start in range(0, depth, _ROWS):
        filled = np.flatnonzero(weights[start : start + _ROWS] != 0)  # of what lies as it is read, which is quicker
        row, step, column = np.unravel_index(filled, (min(_ROWS, depth), by_step.shape[2], width))
        by_step[start + row, column, step] = True
    return np.moveaxis(apart, 1, -1)
