"""whole_edges: inputs that are read, and outputs that are written, element by element cross the border as a whole.

Every second column of an image from DRAM, or to there, is a descriptor for each element. The engines take such steps
in SBUF at no cost.
"""

from math import prod

from tvm_neuron.codegen.passes.edges import with_edges
from tvm_neuron.codegen.passes.in_order import ROW
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.split_dims import split_dims
from tvm_neuron.schedule.expr import Expr
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor


def bring_whole(graph: Graph) -> bool:
    """Brings inputs that moves take in steps, or apart, to a temporary that has them apart; whether there are any."""
    stepped = []
    for tensor in graph.inputs:
        moves = [(block, load) for block in graph.readers(tensor) if (load := moved_load(block))]
        if any(_has_steps(load.indices) or _is_apart(load.indices) or _has_steps(block.index) for block, load in moves):
            stepped.append(tensor)
    edges = with_edges(graph, stepped)
    split_dims(graph, [inside for inside, _ in edges.values()])
    return bool(edges)


def store_whole(graph: Graph) -> bool:
    """Makes outputs of a temporary that several blocks mostly write in steps, or in short parts of rows."""
    parts = []
    for tensor in graph.outputs:
        writers = graph.writers(tensor)
        short = [block for block in writers if _has_steps(block.index) or _is_part(block.index, tensor)]
        if len(writers) > 1 and 2 * sum(map(_count, short)) > tensor.elems:
            parts.append(tensor)
    return bool(with_edges(graph, parts))


def _has_steps(indices: tuple[Expr, ...]) -> bool:
    """Whether no axis goes from one element to the next of the innermost dimension, which others count."""
    maps = linear_indices(indices) or ()
    return bool(maps) and bool(maps[-1].terms) and 1 not in maps[-1].terms.values()


def _is_apart(indices: tuple[Expr, ...]) -> bool:
    """Whether several axes count a dimension."""
    return any(len(part.terms) > 1 for part in linear_indices(indices) or ())


def _count(block: Block) -> int:
    """The elements that it writes."""
    return prod(axis.extent for axis in block.spatial)


def _is_part(indices: tuple[Expr, ...], tensor: Tensor) -> bool:
    maps = linear_indices(indices) or ()
    low, high = maps[-1].span if maps else (0, tensor.shape[-1] - 1)
    return high - low + 1 < min(ROW, tensor.shape[-1])
