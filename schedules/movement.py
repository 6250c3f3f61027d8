"""What only moves data where no engine can (between DRAM and SBUF, across partitions) is carried out by DMA."""

from collections.abc import Sequence

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import Kernel, kernel_of
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import constant_load
from tvm_neuron.schedule.rule import Context, Refusal


class MovementRule:
    """The last rule: a move with any linear pattern, through DRAM where partitions change places.

    Values known at compile time, which engines can't write from any partition on, are moved from a table in DRAM.
    """

    name = "movement"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        out_maps = linear_indices(block.index)
        if block.combine or out_maps is None:
            return Refusal("it computes, and a DMA only moves")
        here = out_maps[context.partition_of[block.output]]
        source = block.expr if isinstance(block.expr, Load) else constant_load(block, here.terms)
        if source is None:
            return Refusal("it computes, and a DMA only moves")
        maps = linear_indices(source.indices)
        if maps is None:
            return Refusal("it gathers from positions that depend on data")
        if block.output.is_stored and source.tensor.kind == "temp" and source.tensor.value is None and maps:
            here = maps[context.partition_of[source.tensor]]  # DMA cares not how what it stores would lie in SBUF
        in_order = [axis for axis, step in here.terms.items() if step == 1 and not _is_read_backward(axis, maps)]
        channel = in_order[0] if in_order else Axis("p", 1)
        return kernel_of(block, out_maps, channel, source, by_dma=True)


def _is_read_backward(axis: Axis, maps: Sequence[Linear]) -> bool:
    return any(part.terms.get(axis, 0) < 0 for part in maps)
