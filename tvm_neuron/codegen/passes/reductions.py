"""split_reductions: a reduction of an expression becomes the expression, as a tensor, and a reduction of that.

stage_reductions: one over everything, or over more axes than an access pattern has, becomes several: along the free
axes, and over what that leaves, side by side in one partition. (Sums of fewer axes need not: the PE array, or one
partition, adds up partitions.)
"""

from dataclasses import replace
from math import prod

from tvm_neuron.codegen.passes.canonical import split_axis
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import data_factor, is_constant_contraction, product_factors
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_LONG = 2048  # elements: up to there one partition is done before they could be brought to others through DRAM
_MOST_AXES = 3  # that an access pattern has room for, see the rule


def split_reductions(graph: Graph) -> None:
    """Splits what no engine does at once: sums of exponentials, of squares. Products with weights stay whole.

    Not where the tensor between would be larger than what is read, as for a product of two matrices.
    """
    for block in graph.blocks:
        is_plain = isinstance(block.expr, Load) or is_constant_contraction(block) or data_factor(block) is not None
        is_plain = is_plain or product_factors(block) is not None
        if not block.combine or is_plain:
            continue
        varying = [load.tensor.elems for load in block.loads() if load.tensor.value is None]
        if varying and prod(axis.extent for axis in block.axes) <= max(varying):
            graph.replace(block, *_split(block))


def stage_reductions(graph: Graph) -> None:
    """Reduces in stages that have an instruction each."""
    for block in graph.blocks:
        if _is_large(block):
            graph.replace(block, *_in_stages(block))


def _is_large(block: Block) -> bool:
    """Whether a sum, maximum, minimum or product is taken of more than one instruction can."""
    if not block.combine or not isinstance(block.expr, Load) or block.expr.tensor.value is not None:
        return False
    long = [axis for axis in block.reduction if axis.extent > 1]
    is_over_everything = all(axis.extent == 1 for axis in block.spatial)
    is_long = block.combine != "add" and prod(axis.extent for axis in long) > _LONG
    return len(long) > _MOST_AXES or (is_over_everything and is_long)


def _in_stages(block: Block) -> list[Block]:
    """Reductions of up to so many axes each, the last one of one row of partitions."""
    long = [axis for axis in block.reduction if axis.extent > 1]
    if len(long) == 1:
        block = split_axis(block, long[0], long[0].extent // _rows(long[0].extent))
    stages = []
    while len(long := [axis for axis in block.reduction if axis.extent > 1]) > 1:
        long.sort(key=lambda axis: -min(axis.extent, PARTITIONS))
        stage, block = _keep(block, long[: max(1, len(long) - _MOST_AXES)])
        stages.append(stage)
    return [*stages, block]


def _keep(block: Block, kept: list[Axis]) -> tuple[Block, Block]:
    """The reduction of all but some axes, and that of these."""
    left = (*block.spatial, *kept)
    own = {axis: Axis(axis.name, axis.extent) for axis in left}
    rest = tuple(Axis(axis.name, axis.extent, is_reduction=True) for axis in kept)
    parts = Tensor(f"{block.output.name}.parts", tuple(axis.extent for axis in left), block.output.dtype)
    others = tuple(axis for axis in block.reduction if axis not in kept)
    index: dict[Axis, Expr] = {axis: Index(mine) for axis, mine in own.items()}
    expr = replace_axes(block.expr, index)
    axes = (*own.values(), *others)
    stage = Block(block.origin, axes, parts, tuple(index.values()), expr, block.combine, block.init)
    of_left = (*block.spatial, *rest)
    return stage, replace(block, axes=of_left, expr=Load(parts, tuple(map(Index, of_left))))


def _rows(extent: int) -> int:
    """In how many equal rows elements can lie on the partitions."""
    return next(rows for rows in range(PARTITIONS, 0, -1) if extent % rows == 0)


def _split(block: Block) -> tuple[Block, Block]:
    between = Tensor(f"{block.output.name}.terms", tuple(axis.extent for axis in block.axes), block.output.dtype)
    axes = tuple(Axis(axis.name, axis.extent) for axis in block.axes)
    by: dict[Axis, Expr] = {old: Index(new) for old, new in zip(block.axes, axes, strict=True)}
    terms = Block(block.origin, axes, between, tuple(by.values()), replace_axes(block.expr, by))
    return terms, replace(block, expr=Load(between, tuple(Index(axis) for axis in block.axes)))
