"""edges: temporaries in the place of inputs and outputs, so that what lies in DRAM keeps its dimensions."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tvm_neuron.codegen.passes.copies import replace_tensors
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor


def with_edges(graph: Graph, tensors: Iterable[Tensor]) -> dict[Tensor, tuple[Tensor, Block]]:
    """Has blocks read and write temporaries where they did inputs and outputs.

    Of each of these its temporary, and the move from the one to the other, which counts each dimension by an axis.
    """
    inside = {tensor: replace(tensor, name=f"{tensor.name}.rows", kind="temp") for tensor in tensors}
    found: dict[Tensor, tuple[Tensor, Block]] = {}
    blocks: list[Block] = []
    for tensor, temporary in inside.items():
        is_input = tensor.kind == "input"
        block = (graph.readers(tensor) if is_input else graph.writers(tensor))[0]
        ends = (tensor, temporary) if is_input else (temporary, tensor)
        found[tensor] = temporary, _move(block, *ends)
        blocks += [found[tensor][1]] if is_input else []
    for block in graph.blocks:
        blocks.append(replace(replace_tensors(block, inside), output=inside.get(block.output, block.output)))
    graph.blocks = blocks + [move for tensor, (_, move) in found.items() if tensor.kind == "output"]
    return found


def _move(block: Block, source: Tensor, output: Tensor) -> Block:
    axes = tuple(Axis(f"r{d}", extent) for d, extent in enumerate(source.shape))
    index = tuple(Index(axis) for axis in axes)
    return Block(block.origin, axes, output, index, Load(source, index))


def without_edges(graph: Graph, outputs: Mapping[Tensor, Tensor]) -> None:
    """Takes such moves back: blocks write and read the outputs, told by the temporaries that were in their place."""
    left = []
    for block in graph.blocks:
        load = moved_load(block)
        if load is None or outputs.get(load.tensor) is not block.output:
            left.append(replace(replace_tensors(block, outputs), output=outputs.get(block.output, block.output)))
    graph.blocks = left
