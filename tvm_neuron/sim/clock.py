"""run_clock: when every dynamic instruction starts and ends; events only, no data.

Rules:
* A compute engine takes its instructions in order. One starts when the engine is free and its waits are satisfied,
  keeps the engine for its busy time, and is complete, so that its counter advances, its latency later. The latency
  overlaps the engine's next instruction, unless that reads what this one wrote: it must find the result (neuroncore.md,
  instruction costs: "about 100 when instructions depend on each other").
* A DMA transfer is ready when the one before it in its queue was ready and its waits are satisfied. After the start
  latency it takes its turn at the DMA engines and the DRAM, which all queues share: first come, first served by ready
  time, the lower queue first where those are equal. It is complete when its turn is over.

The order needs no heap. Compute queues run until they wait for something not known yet. When all do, every transfer
still unknown waits, directly or not, for one of those whose ready time is known, so it gets ready after the earliest
of them: that one is next.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Cost
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import Dynamic, who
from tvm_neuron.sim.dependence import dependent

PS_PER_SECOND = 10**12
_PS_PER_NS = 1000
_MOST_PS = 2**61  # of a whole program: a quarter of what an int64 holds, for what is busy and what is late both add up
_COMPUTE = tuple(code for code, queue in enumerate(QUEUES) if not queue.startswith("dma"))
_DMA = tuple(code for code in range(len(QUEUES)) if code not in _COMPUTE)
# In a queue's list of stalls: held up by the DRAM's being busy, or by its own earlier result.
BUS, OWN = len(QUEUES), len(QUEUES) + 1


@dataclass(frozen=True, slots=True)
class Clock:
    """Start and end of each dynamic instruction on its engine (of a transfer: on the DRAM); why queues stood still."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    total: int
    stalls: list[list[int]]  # [queue][queue waited for, BUS or OWN]


def clock_hz(device: Device, engine: str) -> int:
    """The clock in which an engine's cycles count."""
    own = {"pe": device.pe_clock_hz, "act": device.act_clock_hz, "pool": device.pool_clock_hz}
    return own.get(engine, PS_PER_SECOND // _PS_PER_NS)


def duration_ps(cycles: int, hz: int) -> int:
    """Cycles in picoseconds, to the nearest."""
    return (2 * cycles * PS_PER_SECOND + hz) // (2 * hz)


def run_clock(program: Program, device: Device, dynamic: Dynamic, costs: list[Cost]) -> Clock:
    """Times every dynamic instruction.

    Raises:
        ProgramError: the program deadlocks, or an instruction takes longer than can be counted.
    """
    state = _State(program, device, dynamic, costs)
    while True:
        while sum(state.run_compute(queue) for queue in _COMPUTE):
            pass
        if not state.run_transfer():
            break
    return state.result()


def _durations(cycles: list[int], hz: list[int], most: int) -> NDArray[np.int64]:
    found = [duration_ps(c, h) for c, h in zip(cycles, hz, strict=True)]
    if max(found, default=0) > most:
        raise ProgramError(f"an instruction takes {max(found)} ps; at most {most} can be counted in this program")
    return np.array(found, np.int64)


class _State:
    def __init__(self, program: Program, device: Device, dynamic: Dynamic, costs: list[Cost]) -> None:
        self.program, self.dynamic = program, dynamic
        hz = [clock_hz(device, instruction.engine) for instruction in dynamic.statics]
        most = _MOST_PS // max(1, len(dynamic))
        busy = _durations([cost.busy_cycles for cost in costs], hz, most)
        latency = _durations([cost.latency_cycles for cost in costs], hz, most)
        needs_own = dependent(dynamic)
        waits: list[list[tuple[int, int]]] = [[] for _ in range(len(dynamic))]
        for rows, queue, counts in dynamic.needs():
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                if count > 0:
                    waits[row].append((queue, count))
        self.rows = [np.flatnonzero(dynamic.queue == code) for code in range(len(QUEUES))]
        number = dynamic.number
        self.busy: list[list[int]] = [busy[number[rows]].tolist() for rows in self.rows]
        self.latency: list[list[int]] = [latency[number[rows]].tolist() for rows in self.rows]
        self.needs_own: list[list[bool]] = [needs_own[rows].tolist() for rows in self.rows]
        self.waits = [[waits[row] for row in rows.tolist()] for rows in self.rows]
        self.starts: list[list[int]] = [[] for _ in QUEUES]
        self.done: list[list[int]] = [[] for _ in QUEUES]  # completion times
        self.free = [0] * len(QUEUES)  # when a queue's engine is free; of a DMA queue, when its last one was ready
        self.bus_free = 0
        self.stalls = [[0] * (len(QUEUES) + 2) for _ in QUEUES]

    def run_compute(self, queue: int) -> bool:
        """Runs a compute queue until it waits for something not known yet; whether it ran anything."""
        starts, completed, free = self.starts[queue], self.done[queue], self.free[queue]
        busy, latency, waits, needs_own = (
            self.busy[queue],
            self.latency[queue],
            self.waits[queue],
            self.needs_own[queue],
        )
        done, stalls = self.done, self.stalls[queue]
        before = at = len(starts)
        end = len(busy)
        while at < end:
            start, why = free, -1
            if needs_own[at] and at and completed[-1] > start:
                start, why = completed[-1], OWN
            for other, count in waits[at]:
                times = done[other]
                if count > len(times):
                    break
                if times[count - 1] > start:
                    start, why = times[count - 1], other
            else:
                if why >= 0:
                    stalls[why] += start - free
                starts.append(start)
                free = start + busy[at]
                completed.append(free + latency[at])
                at += 1
                continue
            break
        self.free[queue] = free
        return at > before

    def run_transfer(self) -> bool:
        """Runs the transfer that is ready first; False when there is none left.

        Raises:
            ProgramError: something is left, but all of it waits.
        """
        best, best_ready, best_why = -1, -1, -1
        for queue in _DMA:
            ready, why = self._ready(queue)
            if ready >= 0 and (best < 0 or ready < best_ready):
                best, best_ready, best_why = queue, ready, why
        if best < 0:
            self._check_over()
            return False
        at = len(self.starts[best])
        if best_why >= 0:
            self.stalls[best][best_why] += best_ready - self.free[best]
        earliest = best_ready + self.latency[best][at]
        start = max(earliest, self.bus_free)
        self.stalls[best][BUS] += start - earliest
        self.bus_free = start + self.busy[best][at]
        self.free[best] = best_ready
        self.starts[best].append(start)
        self.done[best].append(self.bus_free)
        return True

    def _ready(self, queue: int) -> tuple[int, int]:
        """(time, queue that it had to wait for) of the next transfer; (-1, -1) where that isn't known."""
        at = len(self.starts[queue])
        if at == len(self.busy[queue]):
            return -1, -1
        ready, why = self.free[queue], -1
        for other, count in self.waits[queue][at]:
            times = self.done[other]
            if count > len(times):
                return -1, -1
            if times[count - 1] > ready:
                ready, why = times[count - 1], other
        return ready, why

    def _check_over(self) -> None:
        for queue, name in enumerate(QUEUES):
            at = len(self.starts[queue])
            if at < len(self.busy[queue]):
                instruction = self.dynamic.statics[self.dynamic.number[self.rows[queue][at]]]
                other, count = next((o, c) for o, c in self.waits[queue][at] if c > len(self.done[o]))
                raise ProgramError(
                    f"Deadlock: '{who(self.program, instruction)}' on {name} waits for {count} completions of "
                    f"{QUEUES[other]}, which stands still after {len(self.done[other])}"
                )

    def result(self) -> Clock:
        """All times, in program order."""
        start = np.zeros(len(self.dynamic), np.int64)
        end = np.zeros(len(self.dynamic), np.int64)
        for queue, rows in enumerate(self.rows):
            start[rows] = self.starts[queue]
            end[rows] = start[rows] + np.array(self.busy[queue], np.int64)
        total = max((times[-1] for times in self.done if times), default=0)
        return Clock(start, end, total, self.stalls)
