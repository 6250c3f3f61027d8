"""operators: what each operator of a program did, beside the node that shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tvm_neuron.explorer.opened import Step
from tvm_neuron.isa.engines import BY_QUEUE, QUEUES
from tvm_neuron.profile.attribution import wall_ps_by_origin
from tvm_neuron.profile.page.facts import Operator, operators
from tvm_neuron.profile.recording import Recording


@dataclass(frozen=True)
class Shown:
    """One operator on one core: its node, its number in the program, and its instructions."""

    node: str
    core: int
    origin: int
    facts: Operator
    busy_us: dict[str, float]
    instructions: int

    @property
    def engine(self) -> str:
        """Who was busy longest."""
        return max(self.busy_us, key=lambda name: self.busy_us[name])

    @property
    def array_share(self) -> float:
        """Its products over what the PE array could have done in its time."""
        return self.facts.array_us / self.facts.us if self.facts.us else 0.0


def node_of(step: int, core: int, origin: int) -> str:
    """The id of an operator's node."""
    return f"{step}.{core}.{origin}"


def shown(number: int, step: Step) -> Iterator[Shown]:
    """All operators of a step's programs that have instructions."""
    for place, core in enumerate(step.cores):
        one = core.recording
        wall = (wall_ps_by_origin(one.neff.program, one.dynamic, one.clock) / 1e6).tolist()
        counts = np.bincount(one.origin)
        for origin, facts in zip(np.unique(one.origin).tolist(), operators(core, wall), strict=True):
            node = node_of(number, place, origin)
            yield Shown(node, place, origin, facts, _busy_us(one, origin), int(counts[origin]))


def _busy_us(one: Recording, origin: int) -> dict[str, float]:
    """Of each engine, and of the DMA's queues together."""
    found: dict[str, float] = {}
    mine = one.origin == origin
    for code, queue in enumerate(QUEUES):
        rows = mine & (one.dynamic.queue == code)
        if rows.any():
            name = BY_QUEUE[queue].name
            taken = int((one.clock.end[rows] - one.clock.start[rows]).sum())
            found[name] = found.get(name, 0.0) + taken / 1e6
    return found
