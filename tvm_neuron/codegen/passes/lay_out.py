"""lay_out: which dimension lies on the partitions, with merged dimensions split where moves would else be scattered."""

from collections.abc import Mapping

from tvm_neuron.codegen.passes.layout import assign_partitions
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.split_dims import split_dims
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor


def lay_out(graph: Graph, given: Mapping[Tensor, int]) -> dict[Tensor, int]:
    """The partition dimension of every tensor; see `assign_partitions`.

    Where a move would take elements one by one between partitions, what it makes is tried in more dimensions.
    """
    blocks = graph.blocks
    partition_of = assign_partitions(graph, given)
    scattered = [block for block in graph.blocks if _is_scattered(block, partition_of)]
    if not scattered:
        return partition_of
    split = Graph(graph.inputs, graph.outputs, blocks)
    if not split_dims(split, [block.output for block in scattered]):
        return partition_of
    found = assign_partitions(split, given)
    still = [block for block in split.blocks if _is_scattered(block, found)]
    if _elems(still) >= _elems(scattered):
        return partition_of
    graph.blocks = split.blocks
    return found


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
