"""Recording: one run of a core's program: of each instruction as often as it runs, when, and why not before."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa import QUEUES, Cost
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.neff import Neff
from tvm_neuron.profile.lives import Lives, find_lives
from tvm_neuron.program.dynamic import Dynamic
from tvm_neuron.sim import Timing
from tvm_neuron.sim.clock import Clock
from tvm_neuron.sim.timing import REASONS, clocked

Ints = NDArray[np.int64]
SEMAPHORE, DATA = "semaphore", "data"


class Arrow(NamedTuple):
    """From one dynamic instruction to a later one: that waits for it, or that is the first to use what it loaded."""

    kind: str
    source: int
    target: int


@dataclass(frozen=True)
class Recording:
    """What happened in one run of `neff.program`; `costs` are of `dynamic.statics`."""

    neff: Neff
    timing: Timing
    dynamic: Dynamic
    clock: Clock
    costs: list[Cost]

    @cached_property
    def lives(self) -> Lives:
        """What lay where in its memories."""
        neff, clock = self.neff, self.clock
        return find_lives(neff.program, neff.loading, neff.device, self.dynamic, clock.start, clock.end)

    @cached_property
    def origin(self) -> Ints:
        """The operator of each dynamic instruction, as its number in the program's table."""
        found = np.array([instruction.origin for instruction in self.dynamic.statics], np.int64)
        return found[self.dynamic.number] if len(found) else found

    def cost_of(self, name: str) -> Ints:
        """A number of the cost of each dynamic instruction."""
        found = np.array([getattr(cost, name) for cost in self.costs], np.int64)
        return found[self.dynamic.number] if len(found) else found

    def reason(self, row: int) -> str:
        """What the dynamic instruction waited for last: a queue, its engine's "own result", or "" for nothing."""
        why = int(self.clock.why[row])
        return REASONS[why] if why >= 0 else ""

    def arrows(self) -> Iterator[Arrow]:
        """Semaphores from who signals to who waits, and transfers into the core to their first use.

        Of waits that an earlier one of the same queue for the same other queue has covered there is none.
        """
        known: dict[tuple[int, int], int] = {}
        rows = [np.flatnonzero(self.dynamic.queue == code) for code in range(len(QUEUES))]
        waits = ((row, *wait) for row, waits in enumerate(self.dynamic.waits()) for wait in sorted(waits))
        for row, queue, count in waits:
            pair = (int(self.dynamic.queue[row]), queue)
            if count > known.get(pair, 0):
                known[pair] = count
                yield Arrow(SEMAPHORE, int(rows[queue][count - 1]), row)
        for life in self.lives.lives:
            if life.row >= 0 and life.use >= 0 and life.loaded >= 0:
                yield Arrow(DATA, life.row, life.use)


def record(neff: Neff) -> Recording:
    """Runs the clock.

    Raises:
        ProgramError: it deadlocks.
    """
    timing, dynamic, clock = clocked(neff.program, neff.device)
    return Recording(neff, timing, dynamic, clock, [one.cost(neff.device) for one in dynamic.statics])


def written_bytes(recording: Recording) -> list[int]:
    """What each static instruction writes at a time."""
    return [
        sum(prod(tile.shape) * size_bytes(tile.dtype) for _, tile in instruction.destinations)
        for instruction in recording.dynamic.statics
    ]
