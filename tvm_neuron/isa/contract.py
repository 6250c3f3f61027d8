"""contract: the PE array's arithmetic, for one matmul or for a whole loop nest of them."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.blas import add_products
from tvm_neuron.isa.scratch import scratch
from tvm_neuron.isa.widen import as_float32

Array = NDArray[Any]
# Operands of summed steps that are converted in one go: what the host's second cache holds.
_GROUP_BYTES = 1 << 20


def contract(stationary: Array, moving: Array, summed: tuple[int, ...], old: Array | None = None) -> Array:
    """out[*L, M, *N] = old + sum over `summed` loops and K of stationary[*L, K, M] * moving[*L, K, *N], in float32.

    Leading axes are loops, of size 1 where an operand doesn't follow the loop; summed loops come out as size 1.
    Each step of the summed loops is one product of depth K, added in loop order, so a nest gives the very bits that
    its matmuls give one by one. (BLAS gives each element the same bits in a matrix of any size, but takes another
    path for a single row or column, so those are doubled.)
    """
    loops = stationary.ndim - 2
    free = moving.shape[loops + 1 :]
    if old is not None:
        moving, old = _spread(stationary, moving, old, loops, summed)
    sizes = [max(stationary.shape[axis], moving.shape[axis]) for axis in range(loops)]
    kept = [axis for axis in range(loops) if axis not in summed]
    both = [axis for axis in kept if stationary.shape[axis] > 1 and moving.shape[axis] > 1]
    left = [axis for axis in kept if axis not in both and stationary.shape[axis] > 1]
    right = [axis for axis in kept if axis not in both and axis not in left]

    m, k = stationary.shape[loops + 1], moving.shape[loops]
    batch = prod(sizes[axis] for axis in both)
    height = prod(sizes[axis] for axis in left) * m
    width = prod(sizes[axis] for axis in right) * prod(free)
    left_order = [*summed, *both, loops, *left, loops + 1, *right]
    right_order = [*summed, *both, loops, *right, *range(loops + 1, moving.ndim), *left]
    sums = np.empty((batch, max(2, height), max(2, width)), np.float32)
    total = sums[:, :height, :width]
    if old is not None:
        sums[...] = 0
        rows, columns = [*both, *left, loops], [*right, *range(loops + 1, moving.ndim)]
        total[...] = old.transpose(*summed, *rows, *columns).reshape(batch, height, width)
    fresh = old is None
    for where in _groups([sizes[axis] for axis in summed], 4 * batch * k * (height + width)):
        a = _matrices("stationary", stationary, summed, where, left_order, (batch, k, height))
        b = _matrices("moving", moving, summed, where, right_order, (batch, k, width))
        add_products(sums, a, b, fresh)
        fresh = False

    order = [*both, *left, loops, *right]
    spread = total.reshape([m if axis == loops else sizes[axis] for axis in order] + list(free))
    places = [order.index(axis) for axis in (*kept, loops)]
    spread = spread.transpose(*places, *range(len(order), spread.ndim))
    return spread.reshape([1 if axis in summed else sizes[axis] for axis in range(loops)] + [m, *free])


def _spread(stationary: Array, moving: Array, old: Array, loops: int, summed: tuple[int, ...]) -> tuple[Array, Array]:
    """`moving` and `old` with loop axes that agree: `old` follows every kept loop that an operand follows, and back."""
    sizes = [max(a, b) for a, b in zip(stationary.shape[:loops], moving.shape[:loops], strict=True)]
    wanted = [1 if axis in summed else max(sizes[axis], old.shape[axis]) for axis in range(loops)]
    follow = [max(moving.shape[axis], wanted[axis] if sizes[axis] == 1 else 1) for axis in range(loops)]
    moving = np.broadcast_to(moving, (*follow, *moving.shape[loops:]))
    return moving, np.broadcast_to(old, (*wanted, *old.shape[loops:]))


def _groups(sizes: Sequence[int], step_bytes: int) -> Iterator[tuple[slice, ...]]:
    """All steps of the summed loops in order, as many at a time as `_GROUP_BYTES` hold: a slice of each loop."""
    room = max(1, _GROUP_BYTES // step_bytes)
    parts: list[list[slice]] = []
    for size in reversed(sizes):  # whole inner loops first, then a part of one loop, then step by step
        turns = max(1, min(size, room))
        parts.append([slice(start, min(start + turns, size)) for start in range(0, size, turns)])
        room = room // size if turns == size else 0
    return product(*reversed(parts))


def _matrices(
    name: str,
    operand: Array,
    summed: Sequence[int],
    where: Sequence[slice],
    order: Sequence[int],
    shape: tuple[int, int, int],
) -> Array:
    """Some steps of the operand as float32 [steps, batch, K, columns]; a single column is doubled, see `contract`."""
    steps = [part.stop - part.start for part in where]
    index = [slice(None)] * operand.ndim
    for axis, part in zip(summed, where, strict=True):
        index[axis] = part if operand.shape[axis] > 1 else slice(None)
    found = operand[tuple(index)]
    if found.strides[-1] != found.itemsize:
        found = as_float32(found)
    found = found.transpose(order)
    found = np.broadcast_to(found, (*steps, *found.shape[len(steps) :]))
    batch, k, columns = shape
    room = scratch(name, prod(steps) * batch * k * max(2, columns))
    if columns == 1:
        room.reshape(*found.shape, 2)[...] = found[..., None]
    else:
        room.reshape(found.shape)[...] = found
    return room.reshape(-1, batch, k, max(2, columns))
