"""What only moves data where no engine can (between DRAM and SBUF, across partitions) is carried out by DMA."""

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import Kernel, kernel_of
from tvm_neuron.schedule.roles import is_forward
from tvm_neuron.schedule.rule import Context, Refusal


class MovementRule:
    """The last rule: a move with any linear pattern, through DRAM where partitions change places."""

    name = "movement"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        out_maps = linear_indices(block.index)
        if block.combine or not isinstance(block.expr, Load) or out_maps is None:
            return Refusal("it computes, and a DMA only moves")
        if linear_indices(block.expr.indices) is None:
            return Refusal("it gathers from positions that are no sums of its axes")
        if not is_forward(block.expr):
            return Refusal("it reads backwards along an axis, and access patterns go forwards")
        here = out_maps[context.partition_of[block.output]]
        channel = next(iter(sorted(here.terms, key=lambda axis: here.terms[axis])), None) or Axis("p", 1)
        return kernel_of(block, out_maps, channel, block.expr, by_dma=True)
