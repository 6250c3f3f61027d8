"""enumerate_indices: reads at static positions that are no sums of axes become moves along runs that are."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.codegen.passes.canonical import canonical, split_axis
from tvm_neuron.codegen.passes.pieces import on_box
from tvm_neuron.codegen.passes.separate import separate
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, axes_of, loads
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.linear import Linear, NotLinearError, SplitAxisError, linear
from tvm_neuron.schedule.roles import is_diagonal
from tvm_neuron.schedule.tensor import Tensor

Positions = NDArray[np.int64]
MAX_PIECES = 2048  # each is a transfer or an instruction of its own
_MANY_PIECES = 64  # take longer than a trip to device memory
_MAX_PERIOD = 256


def enumerate_indices(graph: Graph) -> None:
    """Takes apart gathers from constant indices, shuffles, odd resizes, reflections; diagonals are moves by themselves.

    Arithmetic on such a read works on a tensor of its own, which moves fill; a move is cut along its axes into pieces
    in which every position is a sum of axes. Instead of many pieces, what lies in order in a row of all (as rows of 513
    do that were rows of 512) goes by way of such a row. Indices that depend on data stay as they are.

    Raises:
        UnschedulableError: a position lies outside of its tensor, or a move needs more than MAX_PIECES pieces.
    """
    for block in graph.blocks:
        if any(_is_moved(load) for load in block.loads()):
            moves, rest = separate(block, _is_moved)
            graph.replace(block, *(piece for move in moves for piece in _pieces(move)), *rest)


def _pieces(move: Block) -> list[Block]:
    pieces = [canonical(piece) for piece in islice(_cut(move), MAX_PIECES + 1)]
    if len(pieces) > _MANY_PIECES and (by_row := _by_row(move)):
        return by_row
    if len(pieces) > MAX_PIECES:
        reason = f"it gathers from positions without order, in more than {MAX_PIECES} pieces"
        raise UnschedulableError(f"{move.origin}: {reason}", move.origin.name, reason)
    return pieces


def _by_row(move: Block) -> list[Block] | None:
    """The move by way of a tensor in which the dimensions are one that it reads along no sums of axes.

    None where it does not read along a sum of axes there either.
    """
    load = move.expr
    assert isinstance(load, Load)
    odd = [d for d, index in enumerate(load.indices) if not _is_linear(index)]
    if not odd:
        return None
    first, end = odd[0], odd[-1] + 1
    shape = load.tensor.shape
    axes = tuple(dict.fromkeys(axis for index in load.indices[first:end] for axis in axes_of(index) if axis.extent > 1))
    at = np.zeros([axis.extent for axis in axes], np.int64)
    for d in range(first, end):
        values = np.broadcast_to(evaluate(load.indices[d], axes), at.shape).astype(np.int64)
        _check_inside(move, load, d, values)  # in the row, another element would lie there
        at = at * shape[d] + values
    if not all(_is_even(at, place) for place in range(len(axes))):
        return None
    row = Tensor(f"{load.tensor.name}.row", (load.tensor.elems,), load.tensor.dtype, "scratch")
    own = [Axis(f"d{d}", extent) for d, extent in enumerate(shape)]
    steps = dram_strides(shape, range(len(shape)))
    there = Block(
        move.origin, tuple(own), row, (Linear(0, dict(zip(own, steps, strict=True))).expr(),),
        Load(load.tensor, tuple(map(Index, own))),
    )  # fmt: skip
    read = _sum_of(at, axes).scaled(steps[end - 1])
    for d in (*range(first), *range(end, len(shape))):
        read += linear(load.indices[d]).scaled(steps[d])
    return [canonical(there), canonical(move.with_expr(Load(row, (read.expr(),))))]


def _is_moved(load: Load) -> bool:
    """Whether it reads a run-time tensor at positions that are known now, and no sums of axes; or along a diagonal."""
    if load.tensor.value is not None:
        return False
    if all(map(_is_linear, load.indices)):
        return is_diagonal(load)
    return all(_is_static(index) for index in load.indices)


def _is_static(index: Expr) -> bool:
    return all(part.tensor.value is not None for part in loads(index))


def _is_linear(index: Expr) -> bool:
    try:
        linear(index)
    except (NotLinearError, SplitAxisError):
        return False
    return True


def _cut(move: Block) -> Iterator[Block]:
    """The move in pieces that read along sums of axes; its first irregular index decides where it is cut next."""
    load = move.expr
    assert isinstance(load, Load)
    at = next((d for d, index in enumerate(load.indices) if not _is_linear(index)), None)
    if at is None:
        yield move
        return
    axes = tuple(dict.fromkeys(axis for axis in axes_of(load.indices[at]) if axis.extent > 1))
    values = np.broadcast_to(evaluate(load.indices[at], axes), [axis.extent for axis in axes]).astype(np.int64)
    _check_inside(move, load, at, values)
    bent = [axis for place, axis in enumerate(axes) if not _is_even(values, place)]
    if not bent:
        yield from _cut(move.with_expr(_with_index(load, at, _sum_of(values, axes).expr())))
        return
    place = axes.index(bent[0])
    whole = {axis: (0, axis.extent) for axis in move.axes}
    period, end = _period(values, place)
    if end < bent[0].extent:
        for part in ((0, end), (end, bent[0].extent)):
            yield from _cut(on_box(move, {**whole, bent[0]: part}, load))
    elif period:
        yield from _cut(split_axis(move, bent[0], period))
    else:
        for part in _runs(values, place):
            yield from _cut(on_box(move, {**whole, bent[0]: part}, load))


def _check_inside(move: Block, load: Load, at: int, values: Positions) -> None:
    limit = load.tensor.shape[at]
    outside = values[(values < 0) | (values >= limit)]
    if outside.size:
        reason = f"it reads element {outside[0]} of a dimension of {load.tensor.name} that has {limit}"
        raise UnschedulableError(f"{move.origin}: {reason}", move.origin.name, reason)


def _with_index(load: Load, at: int, index: Expr) -> Load:
    return replace(load, indices=tuple(index if d == at else old for d, old in enumerate(load.indices)))


def _steps(values: Positions, place: int) -> Positions:
    """How far each step along an axis moves: [extent - 1, everything else]."""
    return np.moveaxis(np.diff(values, axis=place), place, 0).reshape(values.shape[place] - 1, -1)


def _is_even(values: Positions, place: int) -> bool:
    return bool(np.ptp(_steps(values, place)) == 0)


def _sum_of(values: Positions, axes: tuple[Axis, ...]) -> Linear:
    steps = {axis: int(_steps(values, place)[0, 0]) for place, axis in enumerate(axes)}
    return Linear(int(values.flat[0]), {axis: step for axis, step in steps.items() if step})


def _runs(values: Positions, place: int) -> list[tuple[int, int]]:
    """The axis in the longest parts with one step each, from its start on."""
    steps = _steps(values, place)
    found, start = [], 0
    extent = values.shape[place]
    while start < extent:
        end = start + 1
        if end < extent and not np.ptp(steps[start]):
            while end < extent and np.all(steps[end - 1] == steps[start, 0]):
                end += 1
        found.append((start, end))
        start = end
    return found


def _period(values: Positions, place: int) -> tuple[int, int]:
    """The period that leaves the fewest pieces, and how far it holds in whole periods; (0, extent) for none.

    A resize by three halves repeats after three positions, each time two elements further on.
    """
    extent = values.shape[place]
    along: Any = np.moveaxis(values, place, 0).reshape(extent, -1)
    fewest, best = len(_runs(values, place)), (0, extent)
    for period in range(2, min(extent // 2, _MAX_PERIOD) + 1):
        if period >= fewest:
            break
        if np.ptp(along[period:] - along[:-period]):
            continue
        first = np.take(values, range(period), axis=place)
        pieces = len(_runs(first, place)) + (extent % period > 0)
        if pieces < fewest:
            fewest, best = pieces, (period, extent // period * period)
    return best
