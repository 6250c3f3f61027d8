"""What chooses by positions that are computed at run time is carried out by DMA, a computed address each."""

from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Gather, Kernel, Operand, kernel_of
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.rule import Context, Refusal


class GatherRule:
    """out[channel, *free] = data[positions[channel, *free], *free], the positions on the partitions of the result."""

    name = "gather"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        found = gathered(block)
        if found is None:
            return Refusal("it chooses by no positions computed at run time")
        out_maps, data_maps = linear_indices(block.index), linear_indices(found.data.indices)
        maps = linear_indices(found.positions.indices)
        if out_maps is None or data_maps is None or maps is None:
            return Refusal("its elements are not addressed by sums of its axes")
        if any(step < 0 for part in data_maps for step in part.terms.values()):
            return Refusal("it reads its data backwards along an axis")
        part = maps[context.partition_of[found.positions.tensor]]
        channel = next(iter(part.terms), None) or Axis("p", 1)
        if out_maps[context.partition_of[block.output]].terms.get(channel, 1) != 1:
            return Refusal("its result lies on other partitions than its positions")
        root = Gather(Operand(found.data.tensor, data_maps), Operand(found.positions.tensor, maps), found.dims)
        return kernel_of(block, out_maps, channel, ROOT, root, by_dma=True)
