"""add_after_contractions: what a norm adds to each channel is added where something is added anyway.

A norm ends with a constant for each channel, which takes an instruction for all that it makes. The layers behind it
have constants of their own, which are added on the way out of the array: there both are one. So are they for the sum
with what such a layer makes, if the norm's result goes around one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_neuron.codegen.passes.moves import can_invert, inverse, is_one_to_one, plain_axes
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import data_factor, is_constant_contraction, table_load
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class _Change:
    """A block and those that come in its place."""

    block: Block
    others: Sequence[Block]


def add_after_contractions(graph: Graph) -> None:
    """Does so where all that read the sum can, if what is added then is finite."""
    for block in graph.blocks:
        match block.expr:
            case Apply("add", (Apply() as inner, Load() as term)) if term.tensor.value is not None:
                _move(graph, block, inner, term)


def _move(graph: Graph, block: Block, inner: Expr, term: Load) -> None:
    output, readers = block.output, graph.readers(block.output)
    if output.kind != "temp" or output.dtype != "float32" or graph.writers(output) != [block] or not can_invert(block):
        return
    if not readers or block.combine or all(load.tensor.value is not None for load in block.with_expr(inner).loads()):
        return
    found = [_of_result(reader, block, term) or _of_other(graph, reader, block, term) for reader in readers]
    changes = [change for change in found if change is not None]
    if len(changes) == len({change.block for change in changes}) == len(readers):
        graph.replace(block, block.with_expr(inner))
        for change in changes:
            graph.replace(change.block, *change.others)


def _of_result(reader: Block, block: Block, term: Load) -> _Change | None:
    """A contraction, with what the term adds to its result; not where that would be more than weights."""
    data = data_factor(reader)
    if data is None or data.tensor is not block.output or not is_constant_contraction(reader):
        return None
    if reader.output.dtype != "float32" or plain_axes(reader.index) is None:
        return None

    def with_data(other: Expr) -> Expr:
        return rewrite(reader.expr, lambda part: other if part == data else part)

    here = _read(term, block, data)
    weights = set(axes_of(with_data(Num(1.0))))
    if not weights.issuperset(axes_of(here)):
        return None
    axes = [axis for axis in reader.axes if axis in weights]
    times = np.prod([axis.extent for axis in reader.reduction if axis not in weights])
    summed = tuple(place for place, axis in enumerate(axes) if axis.is_reduction)
    with np.errstate(over="ignore", invalid="ignore"):
        values = _values(with_data(here), axes).sum(summed, np.float64) * times
        total = _table(values, term, [axis for axis in axes if not axis.is_reduction])
    if total is None:
        return None
    alone = Tensor(f"{reader.output.name}.alone", reader.output.shape, "float32")
    sum_of_both = Apply("add", (Load(alone, reader.index), total))
    whole = replace(reader, axes=reader.spatial, expr=sum_of_both, combine="", init=0.0)
    return _Change(reader, (replace(reader, output=alone), whole))


def _of_other(graph: Graph, reader: Block, block: Block, term: Load) -> _Change | None:
    """What makes the other operand of a sum by adding a constant of its own, with the term added to that."""
    match reader.expr:
        case Apply("add", (Load() as one, Load() as two)) if not reader.combine and one.tensor is not two.tensor:
            mine, other = (one, two) if one.tensor is block.output else (two, one)
        case _:
            return None
    writers = graph.writers(other.tensor)
    is_ours = other.tensor.kind == "temp" and len(writers) == 1 and graph.readers(other.tensor) == [reader]
    if not is_ours or not is_one_to_one(other.indices):
        return None
    match writers[0].expr:
        case Apply("add", (Load() as data, Load() as known)) if known.tensor.value is not None:
            if data.tensor.value is not None or data.tensor is block.output or other.tensor.dtype != "float32":
                return None
        case _:
            return None
    here = _read(_read(term, block, mine), replace(reader, index=other.indices), Load(other.tensor, writers[0].index))
    axes = [axis for axis in writers[0].axes if axis in set(axes_of(known))]
    if not set(axes).issuperset(axes_of(here)):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        total = _table(_values(Apply("add", (known, here)), axes), term, axes)
    if total is None:
        return None
    return _Change(writers[0], [writers[0].with_expr(Apply("add", (data, total)))])


def _read(term: Load, block: Block, load: Load) -> Load:
    """A part of what a block makes, in the axes of another one that reads it."""
    by = inverse(block, load.indices)
    return Load(term.tensor, tuple(replace_axes(index, by) for index in term.indices))


def _values(expr: Expr, axes: Sequence[Axis]) -> np.ndarray:
    return np.broadcast_to(evaluate(expr, axes), [axis.extent for axis in axes])


def _table(values: np.ndarray, term: Load, axes: Sequence[Axis]) -> Load | None:
    """As a constant, if it is finite."""
    table = np.asarray(values, np.float32)
    return table_load(f"{term.tensor.name}.term", table, axes) if np.isfinite(table).all() else None
