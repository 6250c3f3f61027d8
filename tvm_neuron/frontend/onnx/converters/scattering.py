"""ScatterND and ScatterElements: at indices known at import, gathers from the data and the updates.

At others they stay as they are: TVM's importer counts negative indices from the end, those outside as well, after which
nobody can tell.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.frontend.onnx.converters.converter import Converter, Node
from tvm_neuron.frontend.onnx.converters.indexing import axis_of, flat_rows, positions_of, taken
from tvm_neuron.frontend.positions import Positions

_MOST_ROUNDS = 16
_MOST_RUNS = 32  # of slices that lie beside each other: of more, a gather finds each
_REDUCTIONS: dict[bytes, tuple[Callable[[Any, Any], relax.Expr], float]] = {
    b"add": (relax.op.add, 0.0),
    b"mul": (relax.op.multiply, 1.0),
    b"max": (relax.op.maximum, -inf),
    b"min": (relax.op.minimum, inf),
}
"""How an update is combined with what lies there, and what leaves that as it is."""


def _scatter_nd(node: Node) -> relax.Expr | None:
    """Slices of the data replaced by updates, or combined with them."""
    if not node.is_static():
        return None
    found = flat_rows(node)
    if found is None:
        return relax.op.scatter_nd(*node.inputs[:2], _updates(node), _reduction(node))
    rows, rank = found
    shape = node.shape()
    box = _box(rows, shape[:rank]) if _reduction(node) == "update" else None
    if box is not None:
        return _in_box(node, box)
    return _in_rows(node, rows.reshape(-1), int(np.prod(shape[:rank])), list(shape[rank:]))


def _box(rows: Positions, shape: Sequence[int]) -> list[tuple[int, int]] | None:
    """From where to where in each dimension, if the rows are those of a box in order, as of `x[:, 1:, 3:5] = ...`."""
    if not rows.size:
        return None
    flat = rows.reshape(-1)
    corners = zip(np.unravel_index(flat[0], shape), np.unravel_index(flat[-1], shape), strict=True)
    box = [(int(low), int(high) + 1) for low, high in corners]
    extents = [high - low for low, high in box]
    if min(extents) < 1 or int(np.prod(extents)) != flat.size:
        return None
    places = [np.arange(low, high) for low, high in box]
    return box if np.array_equal(np.ravel_multi_index(np.ix_(*places), tuple(shape)).reshape(-1), flat) else None


def _in_box(node: Node, box: Sequence[tuple[int, int]]) -> relax.Expr:
    """The data with a box of them replaced: around the updates what lies beside them, dimension after dimension."""
    shape = node.shape()
    extents = [high - low for low, high in box]
    found = node.emit(relax.op.reshape(node.inputs[2], [*extents, *shape[len(box) :]]))
    for axis in reversed(range(len(box))):
        (low, high), outer = box[axis], box[:axis]
        sides = [(0, low), (high, shape[axis])]
        around = [
            node.emit(relax.op.strided_slice(node.inputs[0], list(range(axis + 1)), *zip(*outer, side, strict=True)))
            if side[0] < side[1]
            else None
            for side in sides
        ]
        parts = [part for part in (around[0], found, around[1]) if part is not None]
        found = node.emit(relax.op.concat(parts, axis=axis)) if len(parts) > 1 else found
    return found


def _updates(node: Node) -> relax.Expr:
    """Where nothing but the indices tells how many there are (torch's masked_scatter), that is checked at run time."""
    data, indices, updates = node.inputs
    if updates.ty.shape is not None or not isinstance(indices.ty.shape, relax.ShapeExpr):
        return updates
    *count, rank = indices.ty.shape
    return node.bb.match_cast(updates, relax.TensorType([*count, *node.shape()[int(rank) :]], data.ty.dtype))


def _scatter_elements(node: Node) -> relax.Expr | None:
    """Elements of the data, likewise."""
    if not node.is_static():
        return None
    shape, axis = node.shape(), axis_of(node)
    positions = positions_of(node, 1, np.array(shape[axis]))
    if positions is None:
        return relax.op.scatter_elements(*node.inputs, axis, _reduction(node))
    rows = _whole_slices(positions, shape, axis)
    if rows is not None:
        return _scattered(node, node.inputs[0], node.inputs[2], rows, axis)
    places: list[Positions] = list(np.indices(positions.shape))
    places[axis] = positions
    flat = np.ravel_multi_index(places, shape)
    return _in_rows(node, flat.reshape(-1), int(np.prod(shape)), [])


def _whole_slices(positions: Positions, shape: Sequence[int], axis: int) -> Positions | None:
    """The places along an axis of slices that are scattered whole, as torch's `select_scatter` does; else None."""
    rows = np.moveaxis(positions, axis, 0)
    others = [extent for dim, extent in enumerate(shape) if dim != axis]
    if not rows.size or [*rows.shape[1:]] != others:
        return None
    rows = rows.reshape(len(rows), -1)
    return None if np.ptp(rows, axis=1).any() else rows[:, 0]


def _reduction(node: Node) -> str:
    """The node's reduction by Relax's name."""
    name = node.attrs.get("reduction", b"none").decode()
    return "update" if name == "none" else str(name)


def _in_rows(node: Node, rows: Positions, count: int, rest: list[int]) -> relax.Expr | None:
    """Data of `count` rows with one update for each of `rows`."""
    if not rows.size:
        return node.inputs[0]
    data = node.emit(relax.op.reshape(node.inputs[0], [count, *rest]))
    updates = node.emit(relax.op.reshape(node.inputs[2], [rows.size, *rest]))
    found = _scattered(node, data, updates, rows, 0)
    return None if found is None else relax.op.reshape(node.emit(found), node.shape())


def _scattered(node: Node, data: relax.Expr, updates: relax.Expr, rows: Positions, axis: int) -> relax.Expr | None:
    """The data with one slice along an axis of the updates for each of `rows`."""
    reduction = node.attrs.get("reduction", b"none")
    shape = [int(extent) for extent in data.ty.shape.values]
    count = shape[axis]
    if reduction == b"none":
        source = np.arange(count)
        source[rows] = count + np.arange(rows.size)  # the last update counts
        runs = np.split(source, np.flatnonzero((np.diff(source) != 1) | (source[1:] == count)) + 1)
        if count and len(runs) <= _MOST_RUNS:
            return relax.op.concat([_run(node, data, updates, run, count, axis) for run in runs], axis=axis)
        both = node.emit(relax.op.concat([data, updates], axis=axis))
        return taken(node, both, source, axis)
    rounds = _rounds(rows, count)
    if len(rounds) > _MOST_ROUNDS:
        return None
    combine, neutral = _REDUCTIONS[reduction]
    shape[axis] = 1
    unchanged = relax.const(np.full(shape, _of_dtype(neutral, node.dtype())), node.dtype())
    both = node.emit(relax.op.concat([updates, unchanged], axis=axis))
    for source in rounds:
        data = node.emit(combine(data, taken(node, both, source, axis)))
    return data


def _run(node: Node, data: relax.Expr, updates: relax.Expr, run: Positions, count: int, axis: int) -> relax.Expr:
    """Slices that follow each other, of the data or, from `count` on, of the updates."""
    tensor, first = (updates, run[0] - count) if run[0] >= count else (data, run[0])
    return node.emit(relax.op.strided_slice(tensor, [axis], [int(first)], [int(first) + len(run)]))


def _rounds(rows: Positions, count: int) -> list[Positions]:
    """For each row the update to combine with, one after the other; `rows.size` for none."""
    rounds: list[Positions] = []
    used = np.zeros(count, np.int64)
    for update, row in enumerate(rows.tolist()):
        if used[row] == len(rounds):
            rounds.append(np.full(count, rows.size))
        rounds[used[row]][row] = update
        used[row] += 1
    return rounds


def _of_dtype(value: float, dtype: str) -> float | int:
    """The value, or for infinities of integers their limit."""
    if not dtype.startswith(("int", "uint")):
        return value
    if np.isfinite(value):
        return int(value)
    return int(np.iinfo(dtype).max if value > 0 else np.iinfo(dtype).min)


CONVERTERS: dict[str, Converter] = {
    "ScatterND": _scatter_nd,
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
}
