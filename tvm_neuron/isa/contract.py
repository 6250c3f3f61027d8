"""contract: the PE array's arithmetic, for one matmul or for a whole loop nest of them."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.matrices import packed, window
from tvm_neuron.isa.products import add_products
from tvm_neuron.isa.recorded import again

Array = NDArray[Any]
# Operands of summed steps that are converted in one go: what the host's second cache holds.
_GROUP_BYTES = 2 << 20


def contract(stationary: Array, moving: Array, summed: tuple[int, ...], old: Array | None = None) -> Array:
    """out[*L, M, *N] = old + sum over `summed` loops and K of stationary[*L, K, M] * moving[*L, K, *N], in float32.

    Leading axes are loops, of size 1 where an operand doesn't follow the loop; summed loops come out as size 1.
    Each step of the summed loops is one product of depth K, added in loop order, so a nest gives the very bits that
    its matmuls give one by one. The result may be a view of a larger array.
    """
    if old is not None:
        return _contract(stationary, moving, summed, old)[1]
    return again(partial(_contract, summed=summed), (stationary, moving), summed)


def _contract(
    stationary: Array, moving: Array, summed: tuple[int, ...], old: Array | None = None
) -> tuple[Array, Array]:
    """(all sums, those that are the result)."""
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
    columns = [*right, *range(loops + 1, moving.ndim)]
    shape = [*(sizes[axis] for axis in right), *free]
    whole = window(moving, [*summed, *both, loops], columns)
    if whole is None:
        width, steps = prod(shape), [prod(shape[place + 1 :]) for place in range(len(shape))]
    else:
        steps_and_rest = (*(sizes[axis] for axis in summed), *whole.shape[len(summed) :])
        whole = whole if whole.shape == steps_and_rest else np.broadcast_to(whole, steps_and_rest)
        width, steps = whole.shape[-1], [moving.strides[axis] // moving.itemsize for axis in columns]
    sums = np.empty((batch, height, width), np.float32)
    order = [*both, *left, loops, *columns]
    total = _spread_out(sums, [sizes[axis] for axis in both], [*(sizes[axis] for axis in left), m], shape, steps)
    if old is not None:
        sums[...] = 0
        total[...] = old.transpose(*summed, *order)[(0,) * len(summed)]
    fresh = old is None
    packed_bytes = 4 * batch * k * (height + (width if whole is None else 0))
    for where in _groups([sizes[axis] for axis in summed], packed_bytes):
        a = packed("stationary", stationary, summed, where, [*both, loops], [*left, loops + 1])
        b = packed("moving", moving, summed, where, [*both, loops], columns) if whole is None else whole[where]
        add_products(sums, a, b, fresh)
        fresh = False
    places = [order.index(axis) for axis in (*kept, *range(loops, moving.ndim))]
    return sums, total.transpose(places)[tuple(None if axis in summed else slice(None) for axis in range(loops))]


def _spread_out(
    sums: Array, batches: Sequence[int], rows: Sequence[int], columns: Sequence[int], steps: Sequence[int]
) -> Array:
    """sums[prod(batches), rows ..., columns ...] with an axis for each; columns lie `steps` elements apart."""
    item, width = sums.itemsize, sums.shape[2]
    outer = [prod(batches[place + 1 :]) * sums.strides[0] for place in range(len(batches))]
    inner = [prod(rows[place + 1 :]) * width * item for place in range(len(rows))]
    return np.ndarray(
        (*batches, *rows, *columns), np.float32, sums, 0, (*outer, *inner, *(step * item for step in steps))
    )


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
