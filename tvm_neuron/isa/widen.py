"""as_float32: the values of any view in float32, quickly also where neighbours in the view don't lie together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tvm_neuron.isa.scratch import scratch
from tvm_neuron.native import assign

Array = NDArray[Any]
_SMALL_ELEMS = 4096
_LONG_RUN = 16


def as_float32(view: Array, room: str = "") -> Array:
    """`view` in float32: itself where it is that, else a copy, whose elements may share places as the view's do.

    The copy lies in the `scratch` of the name `room`, if there is one.

    Conversions of runs are several times as quick as those of single elements, so where the view skips little or
    meets elements again and again (windows), all between its first and last one is converted.
    """
    if view.dtype == np.float32:
        return view
    item = view.itemsize
    is_run = view.strides[-1] == item and view.shape[-1] >= _LONG_RUN
    if is_run or view.size < _SMALL_ELEMS or view.dtype.kind in "iub":
        return _copied(view, room)
    axes = sorted((axis for axis in range(view.ndim) if view.shape[axis] > 1), key=lambda axis: view.strides[axis])
    if any(view.strides[axis] < 0 or view.strides[axis] % item for axis in axes):
        return _copied(view, room)
    run, elems, inner = 1, 1, 0  # of the smallest steps: from the first element to the last one, and how many there are
    for number, axis in enumerate(axes):
        reach = run + view.strides[axis] // item * (view.shape[axis] - 1)
        elems *= view.shape[axis]
        if reach > 2 * elems:
            break
        run, inner = reach, number + 1
    outer = axes[inner:]
    rows = strided(view, (*(view.shape[a] for a in outer), run), (*(view.strides[a] for a in outer), item))
    wide = _copied(rows, room)
    strides = [0] * view.ndim
    for axis in axes[:inner]:
        strides[axis] = view.strides[axis] // item * wide.itemsize
    for number, axis in enumerate(outer):
        strides[axis] = wide.strides[number]
    return as_strided(wide, view.shape, strides)


def strided(view: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """NumPy's `as_strided`, of dtypes too that it takes for none of its own (8-bit floats)."""
    found: Array = as_strided(view.view(f"u{view.itemsize}"), shape, strides).view(view.dtype)
    return found


def _copied(view: Array, room: str) -> Array:
    wide = scratch(room, view.size).reshape(view.shape) if room else np.empty(view.shape, np.float32)
    assign(wide, view)
    return wide
