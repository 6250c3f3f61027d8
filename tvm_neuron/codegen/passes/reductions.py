"""split_reductions: a reduction of an expression becomes the expression, as a tensor, and a reduction of that."""

from dataclasses import replace
from math import prod

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import data_factor, is_constant_contraction, product_factors
from tvm_neuron.schedule.tensor import Tensor


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


def _split(block: Block) -> tuple[Block, Block]:
    between = Tensor(f"{block.output.name}.terms", tuple(axis.extent for axis in block.axes), block.output.dtype)
    axes = tuple(Axis(axis.name, axis.extent) for axis in block.axes)
    by: dict[Axis, Expr] = {old: Index(new) for old, new in zip(block.axes, axes, strict=True)}
    terms = Block(block.origin, axes, between, tuple(by.values()), replace_axes(block.expr, by))
    return terms, replace(block, expr=Load(between, tuple(Index(axis) for axis in block.axes)))
