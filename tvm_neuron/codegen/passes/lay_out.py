"""layouts: which dimension lies on the partitions, with merged dimensions split where moves would else be scattered."""

from collections.abc import Mapping, Sequence

from tvm_neuron.codegen.passes.choose_dims import choose_dims
from tvm_neuron.codegen.passes.edges import with_edges, without_edges
from tvm_neuron.codegen.passes.layout import assign_partitions, own_dims
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.split_dims import split_dims
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.rule import Rule
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_MANY = 4 * PARTITIONS  # elements: fewer instructions take no longer than another order


def layouts(graph: Graph, rules: Sequence[Rule], device: Device) -> list[Mapping[Tensor, int]]:
    """How the tensors may lie: as `assign_partitions` chooses alone, and so that it takes less time by its price."""
    start = own_dims(graph, {})
    found = choose_dims(graph, start, set(), rules, device)
    return [{}] if found == start else [{}, found]


def split_scattered(graph: Graph) -> bool:
    """Splits merged dimensions of what moves would take one by one between partitions; whether there are any.

    Outputs keep their dimensions: they are moved from what has them apart, which DMA does in their order.
    """
    laid_out = Graph(graph.inputs, graph.outputs, graph.blocks)
    partition_of = assign_partitions(laid_out, {})
    found = (block.output for block in laid_out.blocks if _is_scattered(block, partition_of))
    scattered = list(dict.fromkeys(found))
    if not scattered:
        return False
    edges = with_edges(graph, [tensor for tensor in graph.outputs if graph.writers(tensor)])
    is_split = split_dims(graph, [edges[tensor][0] if tensor in edges else tensor for tensor in scattered])
    without_edges(graph, {inside: tensor for tensor, (inside, _) in edges.items() if graph.writers(inside)})
    return is_split


def _is_scattered(block: Block, partition_of: dict[Tensor, int]) -> bool:
    """Whether it moves what several axes count on the partitions to where other axes do, or to DRAM one by one.

    Or it computes so many in a dimension on the partitions alone: an element of each for an instruction.
    """
    load, rows = moved_load(block), block.output.shape[partition_of[block.output]]
    if load is None and not block.combine:
        return block.output.elems == rows > _MANY
    maps, out = linear_indices(load.indices) if load else None, linear_indices(block.index)
    if load is None or not maps or not out or (load.tensor.kind == "input" and block.output.kind != "output"):
        return False
    here, there = maps[partition_of[load.tensor]], out[partition_of[block.output]]
    if block.output.kind == "output":
        return any(axis in here.terms for axis, step in _innermost(out).items() if step == 1)
    return max(len(here.terms), len(there.terms)) > 1 and here.terms != there.terms


def _innermost(maps: Sequence[Linear]) -> Mapping[Axis, int]:
    """The axes of the last dimension of more than one element."""
    return next((part.terms for part in reversed(maps) if part.terms), {})
