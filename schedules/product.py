"""Sums of products of two tensors that are known only at run time (attention, batched matmul) run on the PE array."""

from math import prod

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Load, Num
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Product, kernel_of
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import is_addressable
from tvm_neuron.schedule.roles import factors, is_forward, product_factors
from tvm_neuron.schedule.rule import Context, Refusal


class ProductRule:
    """out[channel, *free] = sum of stationary[depth, channel, *batch] * moving[depth, *free].

    Both operands have the summed axis `depth` on the same partitions; the stationary one is that whose own axis lies on
    the partitions of the output. Other summed axes are steps that accumulate.
    """

    name = "product"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        pair = product_factors(block)
        if pair is None:
            return Refusal("it is no sum of products of two tensors known at run time")
        out_maps = linear_indices(block.index)
        if out_maps is None or not all(map(is_forward, pair)):
            return Refusal("its operands are not addressed forwards by sums of its axes")
        left, right = (_operand(load) for load in pair)
        depth = depth_axis(block, [_partition(operand, context) for operand in (left, right)])
        if depth is None:
            return Refusal("its operands do not have the summed axis on the same partitions")
        here = out_maps[context.partition_of[block.output]]
        for stationary, moving in ((left, right), (right, left)):
            channel = channel_axis(here, stationary, moving)
            if channel is not None:
                break
        else:
            return Refusal("no axis of one operand alone lies on the partitions of its output")
        steps = tuple(axis for axis in block.reduction if axis.extent > 1 and axis is not depth)
        root = Product(stationary, moving, depth, steps, is_sum=stationary.tensor.is_spread)
        return kernel_of(block, out_maps, channel, _scaled(block.expr), root)


def _operand(load: Load) -> Operand:
    return Operand(load.tensor, linear_indices(load.indices) or ())


def _partition(operand: Operand, context: Context) -> Linear:
    return operand.maps[context.partition_of[operand.tensor]]


def depth_axis(block: Block, parts: list[Linear]) -> Axis | None:
    """The summed axis that lies alike on the partitions of both operands, beside axes of batches that step there."""
    if parts[0].terms != parts[1].terms or parts[0].const % 128 != parts[1].const % 128:
        return None
    summed = [axis for axis in parts[0].terms if axis.is_reduction]
    if len(summed) > 1:
        return None
    depth = summed[0] if summed else Axis("k", 1, True)
    return depth if all(is_addressable(part, depth) for part in parts) else None


def channel_axis(here: Linear, stationary: Operand, moving: Operand) -> Axis | None:
    """The axis of the stationary operand alone that lies on the output's partitions, if that is how they lie."""
    own = {axis for m in stationary.maps for axis in m.terms} - {axis for m in moving.maps for axis in m.terms}
    found = [axis for axis, step in here.terms.items() if step == 1 and axis in own]
    channel = found[0] if found else Axis("m", 1)
    return channel if is_addressable(here, channel) else None


def _scaled(expr: Expr) -> Expr:
    scale = prod(part.value for part in factors(expr) if isinstance(part, Num))
    return ROOT if scale == 1 else Apply("multiply", (ROOT, Num(scale)))
