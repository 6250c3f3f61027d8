"""dense_weights: the constant factors of a contraction as one dense array [K, *steps, M], whatever the grouping."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, axes_of
from tvm_neuron.schedule.few_filled import few_filled
from tvm_neuron.schedule.linear import Linear, counts
from tvm_neuron.schedule.tiling import PARTITIONS

Array = NDArray[Any]
PARTITION_STEP = 32  # every access starts at a multiple of it
_MOST_LOOKED_AT = 512  # channels


@dataclass(frozen=True)
class Dense:
    """Weights [K, *steps, M] for partitions `first`, `first` + 1, ...; `has_zeros` where groups leave blocks empty."""

    weights: Array
    first: int
    has_zeros: bool


def dense_weights(
    constants: Sequence[Expr], depth: Linear, rows: Linear, steps: tuple[Axis, ...], data_extent: int
) -> Dense | None:
    """weights[k, *steps, m] = the product of the constants where the block reads partition k and writes channel m.

    Groups become a block diagonal, permuted channels permuted rows; what is never read together is zero. None if the
    constants depend on other axes than those of `depth`, `rows` and `steps`.
    """
    row_axes = _by_radix(rows)
    depth_axes = [axis for axis in _by_radix(depth) if axis not in row_axes]
    known = {*row_axes, *depth_axes, *steps}
    if any(axis not in known and axis.extent > 1 for part in constants for axis in axes_of(part)):
        return None
    grid_axes = [*depth_axes, *steps, *row_axes]
    product = reduce(lambda a, b: Apply("multiply", (a, b)), constants)
    grid = np.broadcast_to(evaluate(product, grid_axes), [axis.extent for axis in grid_axes])
    span = rows.span[1] - rows.span[0] + 1
    step_shape = tuple(axis.extent for axis in steps)
    low, high = max(depth.span[0], 0), min(depth.span[1], data_extent - 1)
    extent = high - low + 1
    is_plain = counts(depth.terms) == extent and counts(rows.terms) == span and low == depth.const
    if is_plain and not set(row_axes) & set(depth.terms):
        whole = grid.reshape(extent, *step_shape, span)
        return _from_start(Dense(whole, low, _has_empty_tiles(whole)))
    scattered = _scatter(grid, grid_axes, depth + Linear(-low), rows, steps, (extent, span))
    return _from_start(Dense(scattered, low, True))


def _has_empty_tiles(weights: Array) -> bool:
    """Whether a whole tile of a matrix is zeros, as of those that move channels; large ones are not looked at."""
    if weights.ndim > 2 or not PARTITIONS < max(weights.shape) <= _MOST_LOOKED_AT:
        return False
    tiles = [range(0, extent, PARTITIONS) for extent in weights.shape]
    return not all(weights[k : k + PARTITIONS, m : m + PARTITIONS].any() for k in tiles[0] for m in tiles[1])


def _from_start(dense: Dense) -> Dense:
    """With rows of zeros in front, so that the first partition is one where an access may start."""
    more = dense.first % PARTITION_STEP
    if not more:
        return dense
    zeros = np.zeros((more, *dense.weights.shape[1:]), dense.weights.dtype)
    return Dense(np.concatenate([zeros, dense.weights]), dense.first - more, dense.has_zeros)


def _scatter(
    grid: Array, axes: list[Axis], depth: Linear, rows: Linear, steps: tuple[Axis, ...], shape: tuple[int, int]
) -> Array:
    outer = [axis for axis in axes if axis not in steps]
    values = np.moveaxis(grid, [axes.index(axis) for axis in steps], range(-len(steps), 0)) if steps else grid
    extents = [axis.extent for axis in outer]
    k = np.broadcast_to(evaluate(depth.expr(), outer), extents).ravel()
    m = np.broadcast_to(evaluate(rows.expr(), outer), extents).ravel() - rows.span[0]
    flat = values.reshape(k.size, *(axis.extent for axis in steps))
    used = (k >= 0) & (k < shape[0])  # padding is read through: what lies outside is zero
    dense = few_filled((*shape, *flat.shape[1:]), np.float32)
    np.add.at(dense, (k[used], m[used]), flat[used])
    return np.moveaxis(dense, 1, -1)


def _by_radix(part: Linear) -> list[Axis]:
    return sorted(part.terms, key=lambda axis: -part.terms[axis])


def without_zeros(
    maps: tuple[Linear, ...], steps: tuple[Axis, ...], weights: NDArray[Any]
) -> tuple[tuple[Linear, ...], tuple[Axis, ...], NDArray[Any]]:
    """The same sum without steps at which all weights [K, *steps, M] are zero: in a spread window, between its taps."""
    if any(weights[end, ..., end].all() for end in (0, -1)):  # nearly always, and all weights are many to look at
        return maps, steps, weights
    kept: list[Axis] = []
    for axis in steps:
        at = 1 + len(kept)
        used = np.flatnonzero(weights.any(axis=tuple(d for d in range(weights.ndim) if d != at)))
        first = int(used[0]) if used.size else 0
        by = gcd(*map(int, np.diff(used))) or axis.extent
        places = range(first, int(used[-1]) + 1 if used.size else 1, by)
        if len(places) == axis.extent:
            kept.append(axis)
            continue
        weights = weights[(slice(None),) * at + (slice(first, places[-1] + 1, by),)]
        part = Axis(axis.name, len(places), is_reduction=True)
        maps = tuple(_narrowed(found, axis, part, first, by) for found in maps)
        if part.extent > 1:
            kept.append(part)
        else:
            weights = weights.squeeze(at)
    return maps, tuple(kept), weights


def _narrowed(found: Linear, axis: Axis, part: Axis, first: int, by: int) -> Linear:
    """The map with `first + by * part` in the place of an axis."""
    if axis not in found.terms:
        return found
    step, others = found.terms[axis], {a: n for a, n in found.terms.items() if a is not axis}
    return Linear(found.const + step * first, others) + Linear(0, {part: step * by} if part.extent > 1 else {})
