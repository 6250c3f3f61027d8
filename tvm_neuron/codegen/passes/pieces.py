"""cut_pieces: a block that chooses by position (padding, concatenation) becomes one plain block for each region."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, floor

from tvm_neuron.codegen.passes.canonical import canonical, split_axis
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Num, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.linear import CutAxisError, Linear, NotLinearError, SplitAxisError, linear

Box = dict[Axis, tuple[int, int]]  # [low, high) of each axis


def cut_pieces(graph: Graph) -> None:
    """Replaces each block with a choice at its root by blocks over boxes, where the choice is by boxes."""
    graph.blocks = [piece for block in graph.blocks for piece in _cut(block)]


def _cut(block: Block) -> list[Block]:
    if block.combine or not (isinstance(block.expr, Apply) and block.expr.op == "select"):
        return [block]
    whole: Box = {axis: (0, axis.extent) for axis in block.axes}
    try:
        return [on_box(block, box, expr) for box, expr in _regions(block.expr, whole)]
    except SplitAxisError as split:  # a choice by remainder: every second element, say
        return _cut(split_axis(block, split.axis, split.inner))
    except CutAxisError as cut:
        halves = ({**whole, cut.axis: part} for part in ((0, cut.at), (cut.at, cut.axis.extent)))
        return [piece for half in halves for piece in _cut(on_box(block, half, block.expr))]
    except NotLinearError:
        return [block]


def _regions(expr: Expr, box: Box) -> Iterator[tuple[Box, Expr]]:
    if any(low >= high for low, high in box.values()):
        return
    if not (isinstance(expr, Apply) and expr.op == "select"):
        yield box, expr
        return
    condition, chosen, other = expr.args
    try:
        bounds = list(_bounds(condition))
    except _NeverError:
        yield from _regions(other, box)
        return
    inside = dict(box)
    for axis, low, high in bounds:
        old_low, old_high = inside[axis]
        for outside in ((old_low, min(low, old_high)), (max(high, old_low), old_high)):
            yield from _regions(other, {**inside, axis: outside})
        inside[axis] = (max(low, old_low), min(high, old_high))
    yield from _regions(chosen, inside)


_BIG = 1 << 60


class _NeverError(Exception):
    """A condition holds nowhere."""


def _bounds(condition: Expr) -> Iterator[tuple[Axis, int, int]]:
    """The condition as [low, high) ranges of single axes that must all hold; dimensions of one element have no axis.

    Raises:
        _NeverError: it holds nowhere.
        NotLinearError: it is none of ranges.
    """
    match condition:
        case Apply("and", (a, b)):
            yield from _bounds(a)
            yield from _bounds(b)
        case Apply("is_equal", (a, b)):
            room = linear(a) + linear(b).scaled(-1)
            if len(room.terms) > 1:
                raise NotLinearError(str(condition))
            for axis, step in room.terms.items():
                at, rest = divmod(-room.const, step)
                yield (axis, at, at + 1) if rest == 0 else (axis, 0, 0)
            if not room.terms and room.const:
                raise _NeverError(str(condition))
        case Apply("is_le" | "is_lt" | "is_ge" | "is_gt" as op, (a, b)):
            left, right = (a, b) if op in ("is_le", "is_lt") else (b, a)
            room = linear(right) + linear(left).scaled(-1)  # must be >= 0, or >= 1 where the test is strict
            if op in ("is_lt", "is_gt"):
                room = room + Linear(-1)
            if len(room.terms) > 1:
                raise NotLinearError(str(condition))
            if not room.terms and room.const < 0:
                raise _NeverError(str(condition))
            for axis, step in room.terms.items():
                edge = -room.const / step
                yield (axis, ceil(edge), _BIG) if step > 0 else (axis, -_BIG, floor(edge) + 1)
        case _:
            raise NotLinearError(str(condition))


def on_box(block: Block, box: Box, expr: Expr) -> Block:
    """The block over a box of its axes, storing `expr`."""
    axes = {axis: Axis(axis.name, high - low, axis.is_reduction) for axis, (low, high) in box.items()}
    by: dict[Axis, Expr] = {
        axis: Apply("add", (Index(new), Num(box[axis][0]))) if box[axis][0] else Index(new)
        for axis, new in axes.items()
    }
    return replace(
        block,
        axes=tuple(axes.values()),
        index=tuple(replace_axes(part, by) for part in block.index),
        expr=replace_axes(expr, by),
    )


def one_by_one(block: Block, axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], Block]]:
    """The block at each place along some of its axes, by itself, and that place."""
    whole = {axis: (0, axis.extent) for axis in block.axes}
    for places in product(*(range(axis.extent) for axis in axes)):
        box = whole | {axis: (at, at + 1) for axis, at in zip(axes, places, strict=True)}
        yield places, canonical(on_box(block, box, block.expr))
