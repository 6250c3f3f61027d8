"""with_outputs_kept: outputs that engines read again stay in SBUF, too, so that nothing waits for them to come back."""

from dataclasses import replace

from tvm_neuron.codegen.kernels.operands import with_copies
from tvm_neuron.codegen.residents import Room, place_within
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product
from tvm_neuron.schedule.tensor import Tensor


def with_outputs_kept(stage: Stage, room: Room, device: Device) -> tuple[Stage, Room]:
    """The stage with such outputs in SBUF, if nothing else is spilled for that, and its room.

    What comes from DRAM for the PE array is converted on its way; here that reads copies. An output of which DMA moves
    a part, or to which it moves what lies in SBUF, perhaps along other partitions, is in DRAM alone.
    """
    read = {tensor for kernel in stage.kernels for tensor in kernel.sources()}
    moves = [kernel for kernel in stage.kernels if kernel.by_dma]
    moved = {tensor for kernel in moves for tensor in kernel.sources()}
    written = {kernel.out for kernel in moves if not set(kernel.sources()) <= set(stage.inputs)}
    kept = frozenset(stage.outputs) & read - moved - written
    if not kept:
        return stage, room

    def needs_copy(kernel: Kernel, data: Tensor) -> bool:
        return (
            data in kept and isinstance(kernel.root, Contraction | Product) and stage.dtype(data) != kernel.root.dtype
        )

    partition_of = dict(stage.partition_of)
    kernels = with_copies(stage.kernels, partition_of, needs_copy)
    copies = {tensor: tensor.dtype for tensor in partition_of.keys() - stage.partition_of.keys()}
    dtypes = stage.dtypes | copies
    other = replace(stage, kernels=kernels, partition_of=partition_of, dtypes=dtypes, kept=kept)
    found = place_within(other, device, room.plan.spilled_bytes)
    return (other, found) if found else (stage, room)
