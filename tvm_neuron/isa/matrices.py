"""Operands of the PE array as float32 matrices with contiguous rows: copied together, or where they lie."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.scratch import scratch
from tvm_neuron.isa.widen import as_float32, strided
from tvm_neuron.native import assign

Array = NDArray[Any]
# How many columns a window may have for each one that is wanted: a product costs more than a copied column.
_MOST_COLUMNS = 1.3
_MOST_WINDOW_BYTES = 16 << 20


def packed(
    name: str,
    operand: Array,
    summed: Sequence[int],
    where: Sequence[slice],
    lead: Sequence[int],
    columns: Sequence[int],
) -> Array:
    """[*summed, *lead, columns]: some steps of the summed loops, in `scratch`.

    A loop that the operand doesn't follow is repeated without a copy.
    """
    index = [slice(None)] * operand.ndim
    for axis, part in zip(summed, where, strict=True):
        index[axis] = part if operand.shape[axis] > 1 else slice(None)
    found = operand[tuple(index)]
    if found.strides[-1] != found.itemsize:
        found = as_float32(found, "wide")
    rest = [axis for axis in range(operand.ndim) if axis not in (*summed, *lead, *columns)]  # of size 1
    found = found.transpose(*summed, *lead, *columns, *rest)
    outer = found.shape[: len(summed) + len(lead)]
    width = prod(found.shape[len(outer) :])
    room = scratch(name, prod(outer) * width)
    assign(room.reshape(found.shape), found)
    shape = (*(part.stop - part.start for part in where), *outer[len(where) :], width)
    room = room.reshape(*outer, -1)
    return room if room.shape == shape else np.broadcast_to(room, shape)


def window(operand: Array, lead: Sequence[int], columns: Sequence[int]) -> Array | None:
    """[*lead, run]: for each place of `lead` the run of memory from its first column to its last one.

    All that is met is converted once, and steps that shift the columns by a little (the taps of a convolution) share
    it. None where that isn't worth it: the columns lie far apart, or the steps too far from each other.
    """
    item = operand.itemsize
    steps = {axis: operand.strides[axis] // item for axis in range(operand.ndim) if operand.shape[axis] > 1}
    if any(step < 0 or operand.strides[axis] % item for axis, step in steps.items()):
        return None
    run, wanted = 1, prod(operand.shape[axis] for axis in columns)
    for axis in sorted((axis for axis in columns if axis in steps), key=lambda axis: steps[axis]):
        if steps[axis] < run:
            return None  # columns that overlap
        run += steps[axis] * (operand.shape[axis] - 1)
    partition, shifts = lead[-1], [axis for axis in lead[:-1] if axis in steps]
    reach = run + sum(steps[axis] * (operand.shape[axis] - 1) for axis in shifts)
    rows = operand.shape[partition]
    copied = wanted * prod(operand.shape[axis] for axis in shifts)
    if wanted < 2 or run > _MOST_COLUMNS * wanted or reach > copied or rows * reach * 4 > _MOST_WINDOW_BYTES:
        return None
    room = scratch("moving", rows * reach)
    assign(room.reshape(rows, reach), strided(operand, (rows, reach), (operand.strides[partition], item)))
    strides = [4 * steps.get(axis, 0) for axis in lead[:-1]]
    shape = [operand.shape[axis] for axis in lead]
    return np.ndarray((*shape, run), np.float32, room, 0, (*strides, 4 * reach, 4))
