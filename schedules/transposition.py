"""What moves one axis from the partitions to the free axes and another one back (or a row) is transposed on PE."""

from dataclasses import replace

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Transposition, kernel_of
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import is_addressable
from tvm_neuron.schedule.roles import is_diagonal, is_forward, is_wide_copy
from tvm_neuron.schedule.rule import Context, Refusal


class TranspositionRule:
    """Tiles [rows <= 128, columns] of the source become [columns, rows] in PSUM, and are copied from there."""

    name = "transposition"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        load, out_maps = block.expr, linear_indices(block.index)
        if block.combine or not isinstance(load, Load) or load.tensor.value is not None or out_maps is None:
            return Refusal("it computes, and a transposition only moves")
        if is_wide_copy(load):
            return Refusal("it moves 32-bit integers, which PSUM's float32 does not hold exactly")
        maps = linear_indices(load.indices)
        if maps is None or not is_forward(load):
            return Refusal("it reads at positions that are no sums of its axes, or backwards")
        if is_diagonal(load, context.partition_of[load.tensor]):
            return Refusal("it would have to read at another place in each partition")
        here, there = out_maps[context.partition_of[block.output]], maps[context.partition_of[load.tensor]]
        channels = [axis for axis, step in here.terms.items() if step == 1 and axis not in there.terms]
        rows = [axis for axis, step in there.terms.items() if step == 1 and axis not in here.terms]
        if not here.terms and not here.const:  # all of it goes to one partition
            channels = [Axis("one", 1)]
        comes_from_one = not there.terms and not there.const
        if comes_from_one and any(axis in part.terms for part in maps for axis in channels):  # else DMA spreads it
            rows = [Axis("one", 1)]
        if len(channels) != 1 or len(rows) != 1:
            return Refusal("it does not swap one axis on the partitions for another")
        (channel,), (row,) = channels, rows
        if block.output.kind == "output" and channel not in block.axes and _is_in_runs(row, out_maps):
            return Refusal("each partition holds what follows each other in the output, which DMA stores as it is")
        if not is_addressable(here, channel) or not is_addressable(there, row) or there.const % 128:
            return Refusal("its partitions are not stepped through as engines can")
        kernel = kernel_of(block, out_maps, channel, ROOT, Transposition(Operand(load.tensor, maps), row))
        return kernel if row in kernel.free else replace(kernel, free=(row, *kernel.free))


def _is_in_runs(row: Axis, out_maps: tuple[Linear, ...]) -> bool:
    """Whether what lies on other partitions is written apart, and what lies beside each other together."""
    return any(m.terms.get(row, 1) > 1 and min(m.terms.values()) == 1 for m in out_maps)
