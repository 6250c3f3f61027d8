"""Sums of products with constant weights (convolution, matmul, grouped or not) run on the PE array."""

from tvm_neuron.schedule.dense import dense_weights, without_zeros
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction, is_forward
from tvm_neuron.schedule.rule import Context, Refusal


class ContractionRule:
    """Weights become the stationary operand, densely [K, steps, M]; data is the moving one, free axes its columns."""

    name = "contraction"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        data = data_factor(block)
        if data is None or not is_constant_contraction(block):
            return Refusal("it is no sum of products with weights known at compile time")
        maps, out_maps = linear_indices(data.indices), linear_indices(block.index)
        if maps is None or out_maps is None:
            return Refusal("its data are not addressed by sums of its axes")
        if not is_forward(data):
            return Refusal("it reads its data backwards along an axis")
        out_dim, data_dim = context.partition_of[block.output], context.partition_of[data.tensor]
        rows = set(out_maps[out_dim].terms)
        free = tuple(axis for axis in block.spatial if axis.extent > 1 and axis not in rows)
        depth = set(maps[data_dim].terms)
        steps = tuple(axis for axis in block.reduction if axis.extent > 1 and axis not in depth)
        if depth & set(free) or any(rows & set(m.terms) for d, m in enumerate(maps) if d != data_dim):
            return Refusal("its output channels and the data's free dimensions are mixed")
        dense = dense_weights(
            [part for part in factors(block.expr) if part is not data], maps[data_dim], out_maps[out_dim], steps,
            data.tensor.shape[data_dim],
        )
        if dense is None:
            return Refusal("its weights change along the free axes")
        maps, steps, weights = without_zeros(maps, steps, dense.weights)
        channel = Axis("m", weights.shape[-1])
        target = Linear(out_maps[out_dim].const, {channel: 1} if channel.extent > 1 else {})
        return Kernel(
            origins=(block.origin,),
            out=block.output,
            out_maps=tuple(target if d == out_dim else m for d, m in enumerate(out_maps)),
            channel=channel,
            free=free,
            expr=ROOT,
            root=Contraction(
                data.tensor,
                tuple(Linear(dense.first) if d == data_dim else m for d, m in enumerate(maps)),
                steps,
                weights,
                dense.has_zeros,
            ),
        )
