"""contract: the PE array's arithmetic, for one matmul or for a whole loop nest of them."""

from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
        stationary, moving, old = _spread(stationary, moving, old, loops, summed)
    sizes = [max(stationary.shape[axis], moving.shape[axis]) for axis in range(loops)]
    kept = [axis for axis in range(loops) if axis not in summed]
    both = [axis for axis in kept if stationary.shape[axis] > 1 and moving.shape[axis] > 1]
    left = [axis for axis in kept if axis not in both and stationary.shape[axis] > 1]
    right = [axis for axis in kept if axis not in both and axis not in left]

    m, k = stationary.shape[loops + 1], moving.shape[loops]
    batch, rows, columns = (prod(sizes[axis] for axis in axes) for axes in (both, left, right))
    free_axes = range(loops + 1, moving.ndim)
    total: Array | None = None
    part: Array | None = None
    for step in product(*(range(sizes[axis]) for axis in summed)):
        where = dict(zip(summed, step, strict=True))
        a = _matrix(_pick(stationary, where, loops), [*both, loops, *left, loops + 1], (batch, k, rows * m))
        b = _matrix(_pick(moving, where, loops), [*both, loops, *right, *free_axes], (batch, k, columns * prod(free)))
        if total is None:
            total = np.matmul(a.swapaxes(-1, -2), b)
            if old is not None:
                total = _add_old(total, old, [*both, *left, loops], [*right, *free_axes], rows * m, columns * prod(free))
        else:
            part = np.matmul(a.swapaxes(-1, -2), b, out=part)
            np.add(total, part, out=total)
    assert total is not None  # the product of no loops has one step
    total = total[:, : rows * m, : columns * prod(free)]

    shape = [sizes[axis] for axis in (*both, *left)] + [m] + [sizes[axis] for axis in right] + list(free)
    order = [*both, *left, loops, *right]
    spread = total.reshape(shape)
    places = [order.index(axis) for axis in (*sorted(kept), loops)]
    spread = spread.transpose(*places, *range(len(order), spread.ndim))
    return spread.reshape([1 if axis in summed else sizes[axis] for axis in range(loops)] + [m, *free])


def _spread(
    stationary: Array, moving: Array, old: Array, loops: int, summed: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    """The three with loop axes that agree: `old` follows every kept loop that an operand follows, and the reverse."""
    sizes = [max(a, b) for a, b in zip(stationary.shape[:loops], moving.shape[:loops], strict=True)]
    wanted = [1 if axis in summed else max(sizes[axis], old.shape[axis]) for axis in range(loops)]
    follow = [max(moving.shape[axis], wanted[axis] if sizes[axis] == 1 else 1) for axis in range(loops)]
    moving = np.broadcast_to(moving, (*follow, *moving.shape[loops:]))
    return stationary, moving, np.broadcast_to(old, (*wanted, *old.shape[loops:]))


def _add_old(total: Array, old: Array, rows: list[int], columns: list[int], height: int, width: int) -> Array:
    """old + total, where total is [batch, height, width] with a doubled row or column, old as the result will be."""
    rest = [axis for axis in range(old.ndim) if axis not in rows and axis not in columns]
    total[:, :height, :width] += old.transpose(*rest, *rows, *columns).reshape(total.shape[0], height, width)
    return total


def _pick(operand: Array, where: dict[int, int], loops: int) -> Array:
    """One step of the summed loops, which stay as axes of size 1."""
    index = [slice(None)] * loops
    for axis, step in where.items():
        at = step if operand.shape[axis] > 1 else 0
        index[axis] = slice(at, at + 1)
    return operand[tuple(index)]


def _matrix(operand: Array, order: list[int], shape: tuple[int, int, int]) -> Array:
    """The operand as float32 matrices [batch, K, columns]; a single column is doubled, see `contract`."""
    rest = [axis for axis in range(operand.ndim) if axis not in order]
    matrix = operand.transpose(*rest, *order).astype(np.float32, order="C").reshape(shape)
    return np.repeat(matrix, 2, axis=2) if shape[2] == 1 else matrix
