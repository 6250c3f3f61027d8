"""Recurrences along free axes (cumulative sums, states that decay) run on the POOL engine."""

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Scan, kernel_of
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.roles import is_forward, scanned
from tvm_neuron.schedule.rule import Context, Refusal


class ScanRule:
    """One tensor_tensor_scan for each row of each partition."""

    name = "scan"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        """See Rule."""
        found, out_maps = scanned(block), linear_indices(block.index)
        if found is None or not isinstance(found.term, Load) or out_maps is None:
            return Refusal("it is no recurrence of a tensor")
        here = out_maps[context.partition_of[block.output]]
        if found.along in here.terms or len(here.terms) > 1 or any(step != 1 for step in here.terms.values()):
            return Refusal("it would have to scan over partitions")
        for load in found.loads:
            maps = linear_indices(load.indices)
            if load.tensor.value is not None or maps is None or not is_forward(load):
                return Refusal(f"it does not read {load.tensor.name} forwards along its axes")
            there = maps[context.partition_of[load.tensor]]
            if there.terms != here.terms:
                return Refusal(f"it would have to move {load.tensor.name} across partitions")
            if there.const % PARTITION_START_STEP or here.const % PARTITION_START_STEP:
                return Refusal(f"it would have to read at partition {there.const} and write at {here.const}")
        channel = next(iter(here.terms), None) or Axis("p", 1)
        root = Scan(found.term, "scan", (found.counted,), found.factor, found.initial, found.along)
        return kernel_of(block, out_maps, channel, ROOT, root)
