"""reduce_once: what is reduced twice in the same way (to a norm's mean, and again for its variance) is so once."""

from collections.abc import Hashable

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor


def reduce_once(graph: Graph) -> None:
    """Later ones give way to the first, and so does arithmetic on their results alone that is the same.

    What is larger than these, as the distances from a mean, is rather computed by each reader than kept.
    """
    first: dict[Hashable, Tensor] = {}
    results: set[Tensor] = set()
    known: dict[Tensor, Tensor] = {}  # the result that stands for one that is no more
    stand_ins: dict[tuple[int, int, bool], Axis] = {}

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(known.get(part.tensor, part.tensor), part.indices) if isinstance(part, Load) else part

    for block in graph.blocks:
        now = block
        if not known.keys().isdisjoint(block.sources()):
            now = block.with_expr(rewrite(block.expr, leaf))
            graph.replace(block, now)
        is_small = bool(now.sources()) and results.issuperset(now.sources())
        if not (block.combine or is_small) or block.output.kind != "temp" or len(graph.writers(block.output)) != 1:
            continue  # asked last, for a gather may be thousands of blocks
        here = first.setdefault(_meaning(now, stand_ins), block.output)
        results.add(here)
        if here is not block.output:
            known[block.output] = here
            graph.replace(now)


def _meaning(block: Block, stand_ins: dict[tuple[int, int, bool], Axis]) -> Hashable:
    """What is equal for blocks that differ in nothing but their outputs' and axes' names."""
    by: dict[Axis, Expr] = {}
    for place, axis in enumerate(block.axes):
        same = stand_ins.setdefault((place, axis.extent, axis.is_reduction), Axis("", axis.extent, axis.is_reduction))
        by[axis] = Index(same)
    index = tuple(replace_axes(part, by) for part in block.index)
    return tuple(by.values()), index, replace_axes(block.expr, by), block.combine, block.init, block.output.dtype
