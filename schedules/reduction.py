"""Reductions along free axes (pooling, softmax's maximum and sum) run on the POOL engine."""

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction, kernel_of
from tvm_neuron.schedule.operations import NEUTRAL, PARTITION_START_STEP
from tvm_neuron.schedule.roles import is_forward
from tvm_neuron.schedule.rule import Context, Refusal


class ReductionRule:
    """One tensor_reduce for each tile; windows are extra dimensions of the access pattern."""

    name = "reduction"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        if not block.combine or not isinstance(block.expr, Load) or block.expr.tensor.value is not None:
            return Refusal("it is no reduction of a tensor")
        if not NEUTRAL[block.combine](block.init):
            return Refusal(f"it starts from {block.init}, which a {block.combine} of its data alone does not")
        maps, out_maps = linear_indices(block.expr.indices), linear_indices(block.index)
        if maps is None or out_maps is None:
            return Refusal("its data are not addressed by sums of its axes")
        if not is_forward(block.expr):
            return Refusal("it reads its data backwards along an axis")
        here, there = out_maps[context.partition_of[block.output]], maps[context.partition_of[block.expr.tensor]]
        if here.terms != there.terms or len(here.terms) > 1:
            return Refusal("it would have to reduce or permute partitions")
        if there.const % PARTITION_START_STEP or here.const % PARTITION_START_STEP:
            return Refusal(f"it would have to read at partition {there.const} and write at {here.const}")
        channel = next(iter(here.terms), None) or Axis("p", 1)
        axes = tuple(axis for axis in block.reduction if axis.extent > 1)
        if len(axes) > 3:
            return Refusal(f"it reduces {len(axes)} axes at once; an access pattern has room for 3")
        root = Reduction(block.expr, block.combine, axes) if axes else None
        return kernel_of(block, out_maps, channel, ROOT if axes else block.expr, root)
