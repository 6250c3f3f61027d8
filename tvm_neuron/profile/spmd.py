"""SpmdUse: what a program on several cores takes besides its parts: its exchanges, and the DRAM that cores share."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_neuron.hw import Device, load_instance
from tvm_neuron.neff import Pipeline
from tvm_neuron.sim import time_program
from tvm_neuron.spmd import Exchange, Join, Plan, Run, StepTime, exchange_ps, joining, together_ps

_PS_PER_US = 1e6


@dataclass(frozen=True, slots=True)
class SpmdUse:
    """All cores begin a part together, and wait for the last of them; so both times add to those of the parts.

    `shared_us` is what the parts take longer than on a core alone, as cores of a chip share its DRAM. `kept` are
    tensors that stay with the cores from one part to another.
    """

    cores: int
    instance: str
    exchanges: tuple[StepTime, ...]
    shared_us: float
    kept: tuple[str, ...] = ()

    @property
    def exchange_us(self) -> float:
        """Of all exchanges."""
        return sum(row.latency_us for row in self.exchanges)

    @property
    def added_us(self) -> float:
        """What the program takes besides its parts on one core."""
        return self.exchange_us + self.shared_us


def spmd_use(plan: Plan, compiled: Sequence[Pipeline], device: Device) -> SpmdUse:
    """Of a plan whose parts hold these programs, which are of one core each.

    Raises:
        ProgramError: a program deadlocks.
    """
    instance = load_instance(plan.instance, device)
    rows, shared_ps = [], 0
    for step in plan.steps:
        if isinstance(step, Join) and step.is_needed:
            step = joining(step)
        if isinstance(step, Exchange):
            ps, size = exchange_ps(step, device, instance)
            count = len({*step.groups[0]}) if step.operation != "collective_permute" else plan.cores
            rows.append(StepTime(step.name, step.operation, count, size, ps / _PS_PER_US))
    for pipeline in compiled:
        program = pipeline.cores[0].program
        alone_ps = time_program(program, device).total_ps
        shared_ps += max(0, together_ps(program, device, instance, plan.cores) - alone_ps)
    runs = [step for step in plan.steps if isinstance(step, Run)]
    between = {name for run in runs for name in (*run.inputs, *run.outputs)}
    kept = between - {info.name for info in plan.inputs} - {*plan.results, plan.core}
    return SpmdUse(plan.cores, instance.name, tuple(rows), shared_ps / _PS_PER_US, tuple(sorted(kept)))
