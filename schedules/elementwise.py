"""Arithmetic on elements in place (activations, sums, fills, copies) runs on the ACT and POOL engines."""

from tvm_neuron.schedule.expr import INTEGER, Apply, Axis, Expr, Load, loads
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import Kernel, kernel_of
from tvm_neuron.schedule.operations import ACTIVATION, ALU, BITWISE, LOGIC, PARTITION_START_STEP
from tvm_neuron.schedule.partitions import is_addressable
from tvm_neuron.schedule.roles import is_diagonal, is_wide_copy
from tvm_neuron.schedule.rule import Context, Refusal


class ElementwiseRule:
    """Every operand keeps its partitions; along the free axes any linear pattern may be read.

    What is only copied may come from several runs of partitions, or go there: of all heads' channels those of each.
    """

    name = "elementwise"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        out_maps = linear_indices(block.index)
        if block.combine or out_maps is None:
            return Refusal("it is no arithmetic on single elements")
        if is_wide_copy(block.expr) and all(tensor.value is not None for tensor in block.sources()):
            return Refusal("its constants are 32-bit integers, which the tables' float32 does not hold exactly")
        unknown = _unknown_operation(block.expr)
        if unknown.startswith(INTEGER):
            what = unknown.removeprefix(INTEGER)
            return Refusal(f"'{what}' of integers: engines compute in float32, exact for whole numbers up to 2^24")
        if unknown:
            return Refusal(f"no engine computes '{unknown}'")
        here = out_maps[context.partition_of[block.output]]
        channel = next((axis for axis, step in here.terms.items() if step == 1), None) or Axis("p", 1)
        is_moved = isinstance(block.expr, Load) and block.expr.tensor.value is None
        goes_in_runs = is_moved and channel in here.terms and is_addressable(here, channel)
        if here.terms and here.terms != {channel: 1} and not goes_in_runs:
            return Refusal("it writes partitions in a permuted order")
        if here.const % PARTITION_START_STEP:
            return Refusal(f"it would have to start at partition {here.const}")
        for load in block.loads():
            if load.tensor.value is not None:
                continue
            maps = linear_indices(load.indices)
            if maps is None:
                return Refusal(f"it reads {load.tensor.name} at positions that are no sums of its axes")
            there = maps[context.partition_of[load.tensor]] if maps else None
            in_runs = load is block.expr and there and channel in there.terms and is_addressable(there, channel)
            if (there.terms if there else {}) != here.terms and not in_runs:
                return Refusal(f"it would have to move {load.tensor.name} across partitions")
            if there and is_diagonal(load, context.partition_of[load.tensor]):
                return Refusal(f"it would have to read {load.tensor.name} at another place in each partition")
            if there and there.const % PARTITION_START_STEP:
                return Refusal(f"it would have to shift {load.tensor.name} by {here.const - there.const} partitions")
            if load.tensor.kind == "input" and block.output.kind != "output" and load is block.expr:
                return Refusal("it only brings an input into the core")
        return kernel_of(block, out_maps, channel, block.expr)


def _unknown_operation(expr: Expr) -> str:
    """The first operation on run-time values that no engine has ("" if there is none)."""
    if not isinstance(expr, Apply) or not any(load.tensor.value is None for load in loads(expr)):
        return ""
    if expr.op not in ALU | ACTIVATION | LOGIC | BITWISE:
        return expr.op
    return next(filter(None, map(_unknown_operation, expr.args)), "")
