"""reduce_once: what is reduced or gathered twice in the same way (for a norm's mean, and its variance) is so once."""

from collections.abc import Hashable

import numpy as np

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.tensor import Tensor


def reduce_once(graph: Graph) -> None:
    """Later ones give way to the first, and so does arithmetic on their results alone that is the same.

    So do gathers and their positions: the keys and the values of a decoder's step go to the same place, which each asks
    a table of its own for, and each of an expert's matrices is chosen by the same numbers.

    What is larger than these, as the distances from a mean, is rather computed by each reader than kept.
    """
    first: dict[Hashable, Tensor] = {}
    results: set[Tensor] = set()
    known: dict[Tensor, Tensor] = {}  # the result that stands for one that is no more
    stand_ins: dict[tuple[int, int, bool], Axis] = {}
    tables: dict[Hashable, list[Tensor]] = {}
    positions = _positions(graph)

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(known.get(part.tensor, part.tensor), part.indices) if isinstance(part, Load) else part

    for block in graph.blocks:
        now, constants = block, [tensor for tensor in block.sources() if tensor.value is not None]
        data = {known.get(tensor, tensor) for tensor in block.sources()}.difference(constants)
        grows = block.output.elems > max((tensor.elems for tensor in constants), default=block.output.elems)
        is_small = bool(data) and results.issuperset(data) and not grows
        is_gather = gathered(block) is not None
        if is_small or is_gather:
            known |= {tensor: _first_equal(tables, tensor) for tensor in constants}
        if not known.keys().isdisjoint(block.sources()):
            now = block.with_expr(rewrite(block.expr, leaf))
            graph.replace(block, now)
        is_one = block.combine or is_small or is_gather or block.output in positions
        if not is_one or block.output.kind != "temp" or len(graph.writers(block.output)) != 1:
            continue  # asked last, for a gather may be thousands of blocks
        here = first.setdefault(_meaning(now, stand_ins), block.output)
        results.add(here)
        if here is not block.output:
            known[block.output] = here
            graph.replace(now)


def _positions(graph: Graph) -> set[Tensor]:
    """What gathers find their data by, and what that is computed from element by element."""
    positions: set[Tensor] = set()
    for block in reversed(graph.blocks):
        if found := gathered(block):
            positions.add(found.positions.tensor)
        elif block.output in positions and not block.combine:
            positions.update(block.sources())
    return positions


def _first_equal(tables: dict[Hashable, list[Tensor]], table: Tensor) -> Tensor:
    """The first of the tables that hold the same."""
    alike = tables.setdefault((table.shape, table.dtype), [])
    for other in alike:
        if np.array_equal(np.asarray(other.value), np.asarray(table.value)):
            return other
    alike.append(table)
    return table


def _meaning(block: Block, stand_ins: dict[tuple[int, int, bool], Axis]) -> Hashable:
    """What is equal for blocks that differ in nothing but their outputs' and axes' names."""
    by: dict[Axis, Expr] = {}
    for place, axis in enumerate(block.axes):
        same = stand_ins.setdefault((place, axis.extent, axis.is_reduction), Axis("", axis.extent, axis.is_reduction))
        by[axis] = Index(same)
    index = tuple(replace_axes(part, by) for part in block.index)
    return tuple(by.values()), index, replace_axes(block.expr, by), block.combine, block.init, block.output.dtype
