"""bring_once: inputs that several kernels read are brought into SBUF once.

What lies in device memory is staged by each kernel that reads it: a norm's input for its mean, for its variance, for
what it subtracts from, and once more for the sum behind.
"""

from collections.abc import Mapping, Sequence

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.copies import replace_tensors
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

_SHARE = 3  # of SBUF, at most so much of it for one input


def bring_once(graph: Graph, partition_of: dict[Tensor, int], rules: Sequence[Rule], context: Context) -> None:
    """Moves each such input to a tensor in SBUF, which all but the DMA read instead; one that takes little of it."""
    most = context.device.sbuf_bytes_per_partition // _SHARE
    for tensor in graph.inputs:
        readers = [block for block in graph.readers(tensor) if not _by_dma(block, rules, context)]
        if _kernels(readers) < 2 or bytes_on_chip(tensor.dtype, partition_of[tensor], tensor.shape) > most:
            continue
        copy = Tensor(f"{tensor.name}.here", tensor.shape, tensor.dtype)
        partition_of[copy] = partition_of[tensor]
        axes = tuple(Axis(f"c{d}", extent) for d, extent in enumerate(tensor.shape))
        index = tuple(map(Index, axes))
        first = readers[0]
        move = canonical(Block(first.origin, axes, copy, index, Load(tensor, index)))
        by: Mapping[Tensor, Tensor] = {tensor: copy}
        graph.replace(first, move, replace_tensors(first, by))
        for block in readers[1:]:
            graph.replace(block, replace_tensors(block, by))


def _by_dma(block: Block, rules: Sequence[Rule], context: Context) -> bool:
    return gathered(block) is not None or apply_rules(block, rules, context).by_dma


def _kernels(readers: Sequence[Block]) -> int:
    """How many kernels at least they become: arithmetic is joined, reductions and products are not."""
    return sum(bool(block.combine) for block in readers) + any(not block.combine for block in readers)
