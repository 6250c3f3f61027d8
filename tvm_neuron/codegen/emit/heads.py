"""heads: those of a product whose results are no chunk each lie side by side in a bank, and leave it together.

A head of 32 channels fills 32 of PSUM's 128 partitions, and an instruction takes as long for these as for all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tvm_neuron.allocation.storage import Span
from tvm_neuron.isa import Tile, affine
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import ROOT, Kernel, Product
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.partitions import across
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


@dataclass(frozen=True)
class Heads:
    """`together` is the kernel with the channels of all heads as one axis; `axis` counts them in `kernel`."""

    kernel: Kernel
    axis: Axis
    together: Kernel

    def members(self, spans: Mapping[Axis, Span], bank: Tile) -> Iterator[tuple[dict[Axis, Span], Tile]]:
        """What each head of a tile makes: the spans of the kernel's axes, and its part of the bank."""
        size, run = self.kernel.channel.extent, spans[self.together.channel]
        at = self.kernel.free.index(self.axis)
        dims = *bank.dims[:at], (1, 1), *bank.dims[at:]
        for turn in range(run.size // size):
            head = replace(run, start=run.start // size + turn, size=1, stride=run.stride // size)
            place = replace(bank, partition=affine(turn * size), partitions=size, dims=dims)
            yield {**spans, self.axis: head, self.kernel.channel: Span(0, size)}, place


def heads_together(kernel: Kernel, partition_of: Mapping[Tensor, int]) -> Heads | None:
    """None where each head, if there are any, is better off alone: it fills a chunk, or more is done than moving it."""
    root, channel = kernel.root, kernel.channel
    part = kernel.out_maps[partition_of[kernel.out]]
    size = channel.extent
    stepping = [axis for axis in across(part) if axis is not channel]
    if not isinstance(root, Product) or kernel.expr is not ROOT or len(stepping) != 1 or part.const % PARTITIONS:
        return None
    (axis,) = stepping
    if size % PARTITION_START_STEP or PARTITIONS % size or part.terms != {**part.terms, axis: size, channel: 1}:
        return None
    most = PARTITIONS // size  # in a chunk
    for operand in (root.stationary, root.moving):
        # a loop over chunks of heads comes back to the same partitions of operands
        if operand.maps[partition_of[operand.tensor]].terms.get(axis, 0) * most % PARTITIONS:
            return None
    every = Axis(axis.name, axis.extent * size)
    by = Linear(0, {every: 1})
    maps = tuple(each.replaced(axis, Linear()).replaced(channel, by) for each in kernel.out_maps)
    free = tuple(other for other in kernel.free if other is not axis)
    return Heads(kernel, axis, replace(kernel, out_maps=maps, channel=every, free=free))
