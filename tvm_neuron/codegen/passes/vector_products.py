"""vector_products: a matrix times a vector, both data, as its terms and their sums, which need no other layout.

The PE array sums along the partitions, and a state of few elements for each of many channels lies within them: it would
be transposed, step by step, for a product of a single column.
"""

from dataclasses import replace

from tvm_neuron.schedule.expr import Axis, Index, Load, axes_of, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import gathered, product_factors
from tvm_neuron.schedule.tensor import Tensor


def vector_products(graph: Graph) -> bool:
    """Splits all such products; whether there are any."""
    found = [block for block in graph.blocks if _is_by_vector(block) and not _is_chosen(graph, block)]
    for block in found:
        graph.replace(block, *_split(block))
    return bool(found)


def _is_by_vector(block: Block) -> bool:
    """Whether it is a product of which each element of one factor is multiplied once."""
    pair = product_factors(block)
    if pair is None or not block.output.dtype.startswith("float"):
        return False
    axes = {axis for axis in block.axes if axis.extent > 1}
    return any(axes <= set(axes_of(factor)) for factor in pair)


def _is_chosen(graph: Graph, block: Block) -> bool:
    """Whether it multiplies a matrix that comes from device memory, by where it lies there."""
    return any(gathered(writer) for tensor in block.sources() for writer in graph.writers(tensor))


def _split(block: Block) -> tuple[Block, Block]:
    long = [axis for axis in block.axes if axis.extent > 1]
    own: dict[Axis, Axis] = {axis: Axis(axis.name, axis.extent) for axis in long}
    terms = Tensor(f"{block.output.name}.terms", tuple(axis.extent for axis in long), block.output.dtype)
    expr = replace_axes(block.expr, {axis: Index(mine) for axis, mine in own.items()})
    made = Block(block.origin, tuple(own.values()), terms, tuple(map(Index, own.values())), expr)
    return made, replace(block, expr=Load(terms, tuple(map(Index, long))))
