"""weigher: whether a subgraph between CPU operators gains more on a NeuronCore than carrying its tensors costs.

Only such parts are weighed, and those beside one CPU operator that merely move data. Others stay where the user asked
for them: a model that is supported as a whole is never moved away, nor is the network before or after a CPU part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm import relax

from tvm_neuron.codegen.call_blocks import call_blocks
from tvm_neuron.codegen.capability import argument
from tvm_neuron.codegen.defects import compiling
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.frontend.origin import bindings_of
from tvm_neuron.hw import Device, load_device
from tvm_neuron.partition import Island, Weigh
from tvm_neuron.partition.plan import Plan
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.sim import time_program

CLEARLY = 10
"""What holds sums and takes this many times as long on the CPU as its tensors take on their way is worth it."""


@dataclass(frozen=True)
class Weight:
    """The two sides, in us: what the operators take on the CPU and on the NeuronCore, and what carrying costs."""

    cpu_us: float
    core_us: float
    carry_us: float

    @property
    def is_worth_it(self) -> bool:
        """Whether the gain is larger than the cost."""
        return self.cpu_us - self.core_us > self.carry_us


def weigher(options: BuildOptions) -> Weigh | None:
    """How the partition weighs subgraphs with CPU operators around them; not at all if those are forbidden."""
    if options.must_compile:
        return None
    if options.minimum_segment_size is not None:
        return _by_size(options.minimum_segment_size)
    device = load_device(options.device)

    def weigh(func: relax.Function, island: Island) -> str:
        if not island.is_enclosed and any(map(_computes, run_time_calls(func))):
            return ""
        carry_us = carry_time_us(island.carried_bytes, device)
        cpu_us, has_sums = 0.0, False
        for blocks in run_time_calls(func):
            cpu_us += cpu_time_us(blocks, device)
            has_sums = has_sums or any(block.combine for block in blocks)
            if has_sums and cpu_us > CLEARLY * carry_us:
                return ""
        if cpu_us <= carry_us:
            return _reason(island, Weight(cpu_us, 0.0, carry_us))
        if options.optlevel == 1 or not options.has_time():
            return ""
        with compiling(func, "a part on trial"):
            core_us = _core_time_us(legalise(func), device, options)
        weight = Weight(cpu_us, core_us, carry_us)
        return "" if weight.is_worth_it else _reason(island, weight)

    return weigh


def run_time_calls(func: relax.Function) -> Iterator[list[Block]]:
    """The blocks of each call that reads something known at run time only."""
    plan = Plan()
    for binding in bindings_of(func):
        value = binding.value
        if all(map(plan.is_constant, value.args)) if isinstance(value, relax.Call) else plan.is_constant(value):
            plan.constants.add(binding.var)
        elif isinstance(value, relax.Call):
            arguments = [argument(arg, plan.is_constant, plan.spans_of) for arg in value.args]
            yield call_blocks(value, arguments, binding.var.name, Origin("", value.op.name))[0]


def _computes(blocks: Sequence[Block]) -> bool:
    """Whether more is done than to move data."""
    return any(block.combine or not isinstance(block.expr, Load | Num) for block in blocks)


def cpu_time_us(blocks: Sequence[Block], device: Device) -> float:
    """All operations of the loops, at the rate of the CPU parts."""
    operations = sum(
        prod(axis.extent for axis in block.axes) * max(1, _operations(block.expr) + bool(block.combine))
        for block in blocks
    )
    return operations * 1e6 / device.host_operations_per_second


def carry_time_us(carried_bytes: int, device: Device) -> float:
    """One call of the device, and its tensors over the link."""
    return device.host_call_ns / 1e3 + carried_bytes * 1e6 / device.host_bytes_per_second


def _core_time_us(graph: Graph, device: Device, options: BuildOptions) -> float:
    from tvm_neuron.codegen import function  # here, since it brings all schedules with it

    silent = replace(options, on_stage=lambda _stage: None)
    return time_program(function.compile_graph(graph, "island", device, silent).program, device).total_ps / 1e6


def _operations(expr: Expr) -> int:
    return 1 + sum(map(_operations, expr.args)) if isinstance(expr, Apply) else 0


def _reason(island: Island, weight: Weight) -> str:
    count = "its operator takes" if island.operators == 1 else f"the {island.operators} operators of its part take"
    core = f" against {weight.core_us:.1f} us on the NeuronCore" if weight.core_us else ""
    return (
        f"moved to the CPU: {count} {weight.cpu_us:.1f} us there{core}, and carrying its tensors to the NeuronCore and "
        f"back costs {weight.carry_us:.1f} us"
    )


def _by_size(minimum: int) -> Weigh:
    def weigh(_func: relax.Function, island: Island) -> str:
        if island.operators >= minimum:
            return ""
        count = "1 operator" if island.operators == 1 else f"{island.operators} operators"
        return f"moved to the CPU: a part of {count}, and minimum_segment_size asks for {minimum}"

    return weigh
