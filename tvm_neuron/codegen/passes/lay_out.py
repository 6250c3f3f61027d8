"""layouts: which dimension lies on the partitions, with merged dimensions split where moves would else be scattered."""

from collections.abc import Mapping, Sequence

from tvm_neuron.codegen.passes.choose_dims import choose_dims
from tvm_neuron.codegen.passes.layout import assign_partitions, own_dims
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.split_dims import split_dims
from tvm_neuron.hw import Device
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.rule import Rule
from tvm_neuron.schedule.tensor import Tensor


def layouts(graph: Graph, rules: Sequence[Rule], device: Device) -> list[Mapping[Tensor, int]]:
    """How the tensors may lie: as `assign_partitions` chooses alone, and so that it takes less time by its price."""
    start = own_dims(graph, {})
    found = choose_dims(graph, start, set(), rules, device)
    return [{}] if found == start else [{}, found]


def split_scattered(graph: Graph) -> None:
    """Splits merged dimensions of what moves would take one by one between partitions, if fewer elements then are."""
    first = Graph(graph.inputs, graph.outputs, graph.blocks)
    partition_of = assign_partitions(first, {})
    scattered = [block for block in first.blocks if _is_scattered(block, partition_of)]
    split = Graph(graph.inputs, graph.outputs, graph.blocks)
    if not scattered or not split_dims(split, [block.output for block in scattered]):
        return
    second = Graph(graph.inputs, graph.outputs, split.blocks)
    found = assign_partitions(second, {})
    still = [block for block in second.blocks if _is_scattered(block, found)]
    if _elems(still) < _elems(scattered):
        graph.blocks = split.blocks


def _is_scattered(block: Block, partition_of: dict[Tensor, int]) -> bool:
    """Whether it moves what several axes count on the partitions to where other axes do."""
    load = moved_load(block)
    maps, out = linear_indices(load.indices) if load else None, linear_indices(block.index)
    if load is None or not maps or not out or load.tensor.kind == "input" or block.output.kind == "output":
        return False
    here, there = maps[partition_of[load.tensor]], out[partition_of[block.output]]
    return max(len(here.terms), len(there.terms)) > 1 and here.terms != there.terms


def _elems(moves: list[Block]) -> int:
    return sum(block.output.elems for block in moves)
