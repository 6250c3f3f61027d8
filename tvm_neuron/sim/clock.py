"""run_clock: when every dynamic instruction starts and ends; events only, no data.

Rules:
* A compute engine takes its instructions in order. One starts when the engine is free and its waits are satisfied,
  keeps the engine for its busy time, and is complete, so that its counter advances, its latency later. The latency
  overlaps the engine's next instruction, unless that reads what this one wrote: it must find the result (AWS's
  documentation: about 100 cycles when instructions depend on each other).
* Two engines that share a port (`PORTS`) don't access its memory at the same time where the device says so
  (`psum_accesses` of 1 for Vector and Scalar, `sbuf_accesses` for Vector and GpSimd): who could begin first has it for
  its busy time, the first of the two where both could.
* A DMA transfer is ready when the one before it in its queue was ready and its waits are satisfied. After the start
  latency it takes its turn at the core's DMA engines, which all queues share: first come, first served by ready time,
  the lower queue first where those are equal. It is complete when its turn is over, or when the DRAM is through with
  its bytes, which other cores of the chip may have first (`together.py`).

The order needs no heap. Compute queues run until they wait for something not known yet, or for a port, where the other
queue might ask for it earlier. When all do, whatever is still unknown waits, directly or not, for a transfer or a
port's access that is known to be ready, so it gets ready after the earliest of these: that one is next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Cost
from tvm_neuron.isa.engines import BY_NAME, of_dma
from tvm_neuron.native import Timed, Times
from tvm_neuron.native import run_clock as run_by_library
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import Dynamic, who
from tvm_neuron.sim.dependence import Flags, dependent
from tvm_neuron.sim.ports import accesses, partners, shared_ports

PS_PER_SECOND = 10**12
_PS_PER_NS = 1000
_MOST_PS = 2**61  # of a whole program: a quarter of what an int64 holds, for what is busy and what is late both add up
_COMPUTE = tuple(code for code, queue in enumerate(QUEUES) if not of_dma(queue))
_DMA = tuple(code for code in range(len(QUEUES)) if code not in _COMPUTE)
# In a queue's list of stalls: held up by the DRAM's being busy, or by its own earlier result.
BUS, OWN = len(QUEUES), len(QUEUES) + 1


@dataclass(frozen=True, slots=True)
class Clock:
    """Start and end of each dynamic instruction on its engine (of a transfer: on the DRAM); why queues stood still.

    Before an instruction could start, its queue stood still for `waited`, until what `why` tells was there; a transfer
    then starts after its latency and `turn`, for which others had the DRAM. At `done` its counter advances.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    done: NDArray[np.int64]
    waited: NDArray[np.int64]
    why: NDArray[np.int8]  # the queue waited for last, or OWN; -1: nothing
    turn: NDArray[np.int64]
    total: int
    stalls: list[list[int]]  # [queue][queue waited for, BUS or OWN]: `waited` and `turn`, summed


def clock_hz(device: Device, engine: str) -> int:
    """The clock in which an engine's cycles count."""
    return BY_NAME[engine].clock_hz(device)


def duration_ps(cycles: int, hz: int) -> int:
    """Cycles in picoseconds, to the nearest."""
    return (2 * cycles * PS_PER_SECOND + hz) // (2 * hz)


def run_clock(
    program: Program, device: Device, dynamic: Dynamic, costs: list[Cost], needs_own: Flags | None = None
) -> Clock:
    """Times every dynamic instruction; `needs_own` is what `dependent` says of them, where that is known.

    Raises:
        ProgramError: the program deadlocks, or an instruction takes longer than can be counted.
    """
    needs_own = dependent(dynamic) if needs_own is None else needs_own
    timed = _timed(device, dynamic, costs, needs_own)
    times = run_by_library(timed, _MOST_PS, OWN)
    if times is not None:
        return _result(dynamic, timed, times)
    core = CoreClock(program, device, dynamic, costs, needs_own)  # says what waits for ever
    while core.run_to_transfer():
        core.transfer()
    return core.result()


def _durations(cycles: list[int], hz: list[int], most: int) -> NDArray[np.int64]:
    found = [duration_ps(c, h) for c, h in zip(cycles, hz, strict=True)]
    if max(found, default=0) > most:
        raise ProgramError(f"an instruction takes {max(found)} ps; at most {most} can be counted in this program")
    return np.array(found, np.int64)


class CoreClock:
    """One core, from transfer to transfer."""

    def __init__(self, program: Program, device: Device, dynamic: Dynamic, costs: list[Cost], needs_own: Flags) -> None:
        self.program, self.dynamic = program, dynamic
        self.timed = timed = _timed(device, dynamic, costs, needs_own)
        borders = timed.first.tolist()
        queues = [slice(*pair) for pair in pairwise(borders)]
        self.busy: list[list[int]] = [timed.busy[its].tolist() for its in queues]
        self.latency: list[list[int]] = [timed.latency[its].tolist() for its in queues]
        self.needs_own: list[list[bool]] = [timed.needs_own[its].tolist() for its in queues]
        waits = [tuple(wait) for wait in timed.waits.tolist()]
        each = [waits[slice(*pair)] for pair in pairwise(timed.first_wait.tolist())]
        self.waits: list[list[list[tuple[int, int]]]] = [each[its] for its in queues]
        numbers = dynamic.number[_by_queue(dynamic)]
        self.dram_bytes: list[list[int]] = [
            [costs[at].dram_bytes for at in numbers[its].tolist()] if code in _DMA else []
            for code, its in enumerate(queues)
        ]
        self.port_count = timed.partners.shape[1]
        self.partners: list[dict[int, int]] = [
            {port: int(other) for port, other in enumerate(others) if other >= 0} for others in timed.partners
        ]
        ports = [[port for port in range(self.port_count) if bits >> port & 1] for bits in timed.ports.tolist()]
        self.ports = [ports[its] for its in queues]
        self.begin(0)

    def begin(self, at: int) -> None:
        """Has the program run from picosecond `at` on."""
        self.starts: list[list[int]] = [[] for _ in QUEUES]
        self.done: list[list[int]] = [[] for _ in QUEUES]  # completion times
        self.free = [at] * len(QUEUES)  # when a queue's engine is free; of a DMA queue, when its last one was ready
        self.bus_free = at
        self.next_start = at  # of the transfer that is next
        self._next = (-1, 0, -1)  # its queue, when it is ready, and what it waited for
        self.port_free = [at] * self.port_count
        self.asked: dict[int, int] = {}  # queues that stand still for a port, and when they could begin
        self.waited: list[list[int]] = [[] for _ in QUEUES]
        self.why: list[list[int]] = [[] for _ in QUEUES]

    @property
    def end(self) -> int:
        """When the last instruction so far is complete."""
        return max((times[-1] for times in self.done if times), default=max(self.free))

    def run_compute(self, queue: int, has_turn: bool = False) -> bool:
        """Runs a compute queue until it waits for something not known yet, or for a port; whether it ran anything.

        It `has_turn` if it is known to be the first that asks for one.
        """
        starts, completed, free = self.starts[queue], self.done[queue], self.free[queue]
        busy, latency, waits, needs_own, ports = (
            self.busy[queue],
            self.latency[queue],
            self.waits[queue],
            self.needs_own[queue],
            self.ports[queue],
        )
        before_others = {port: self._first_at(queue, port) for port in self.partners[queue]}
        done, waited, whys = self.done, self.waited[queue], self.why[queue]
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
                if ports[at]:
                    if not has_turn and any(start > before_others[port] for port in ports[at]):
                        self.asked[queue] = start
                        break
                    has_turn = False
                    self.asked.pop(queue, None)
                    for port in ports[at]:
                        if self.port_free[port] > start:
                            start, why = self.port_free[port], self.partners[queue][port]
                    for port in ports[at]:
                        self.port_free[port] = start + busy[at]
                waited.append(start - free)
                whys.append(why)
                starts.append(start)
                free = start + busy[at]
                completed.append(free + latency[at])
                at += 1
                continue
            break
        self.free[queue] = free
        return at > before

    def _first_at(self, queue: int, port: int) -> int:
        """Until when the queue has a port without waiting to see whether the other one that shares it asks earlier."""
        other = self.partners[queue][port]
        if len(self.starts[other]) == len(self.busy[other]):
            return _MOST_PS
        return self.asked.get(other, self.free[other]) - (queue > other)

    def run_to_transfer(self) -> bool:
        """Runs what needs no transfer that is not over yet; whether one is next, at `next_start`, or all is done.

        Raises:
            ProgramError: something is left, but all of it waits.
        """
        while True:
            while sum(self.run_compute(queue) for queue in _COMPUTE):
                pass
            best, best_ready, best_why = -1, -1, -1
            for queue in _DMA:
                ready, why = self._ready(queue)
                if ready >= 0 and (best < 0 or ready < best_ready):
                    best, best_ready, best_why = queue, ready, why
            asks = min(self.asked, key=lambda queue: (self.asked[queue], queue), default=-1)
            if asks < 0 or (best >= 0 and self.asked[asks] > best_ready):
                break
            self.run_compute(asks, has_turn=True)
        if best < 0:
            self._check_over()
            return False
        self._next = best, best_ready, best_why
        self.next_start = max(best_ready + self.latency[best][len(self.starts[best])], self.bus_free)
        return True

    def transfer(self, carry: Callable[[int, int], int] | None = None) -> None:
        """Runs the next transfer; `carry` says when a DRAM that others use is through with bytes, from their start."""
        queue, ready, why = self._next
        at = len(self.starts[queue])
        self.waited[queue].append(ready - self.free[queue])
        self.why[queue].append(why)
        self.bus_free = self.next_start + self.busy[queue][at]
        if carry is not None:
            self.bus_free = max(self.bus_free, carry(self.next_start, self.dram_bytes[queue][at]))
        self.free[queue] = ready
        self.starts[queue].append(self.next_start)
        self.done[queue].append(self.bus_free)

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
                row = _by_queue(self.dynamic)[self.timed.first[queue] + at]
                instruction = self.dynamic.statics[self.dynamic.number[row]]
                other, count = next((o, c) for o, c in self.waits[queue][at] if c > len(self.done[o]))
                raise ProgramError(
                    f"Deadlock: '{who(self.program, instruction)}' on {name} waits for {count} completions of "
                    f"{QUEUES[other]}, which stands still after {len(self.done[other])}"
                )

    def result(self) -> Clock:
        """All times, in program order."""
        starts, done, waited = (
            np.fromiter(chain.from_iterable(times), np.int64) for times in (self.starts, self.done, self.waited)
        )
        why = np.fromiter(chain.from_iterable(self.why), np.int8)
        return _result(self.dynamic, self.timed, Times(starts, done, waited, why))


def _by_queue(dynamic: Dynamic) -> NDArray[np.int64]:
    """Dynamic instructions, those of each queue together."""
    return np.argsort(dynamic.queue, kind="stable")


def _timed(device: Device, dynamic: Dynamic, costs: list[Cost], needs_own: Flags) -> Timed:
    hz = [clock_hz(device, instruction.engine) for instruction in dynamic.statics]
    most = _MOST_PS // max(1, len(dynamic))
    busy = _durations([cost.busy_cycles for cost in costs], hz, most)
    latency = _durations([cost.latency_cycles for cost in costs], hz, most)
    shared = shared_ports(device, dynamic)
    bits = [sum(accesses(each, port) << at for at, port in enumerate(shared)) for each in dynamic.statics]
    others = [[partners(queue, shared).get(port, -1) for port in range(len(shared))] for queue in QUEUES]
    order = _by_queue(dynamic)
    number = dynamic.number[order]
    first_wait, waits = _waits(dynamic, order)
    return Timed(
        np.array([code in _DMA for code in range(len(QUEUES))]),
        np.searchsorted(dynamic.queue[order], np.arange(len(QUEUES) + 1)),
        busy[number], latency[number], needs_own[order], first_wait, waits, np.array(bits, np.uint8)[number],
        np.array(others, np.int8).reshape(len(QUEUES), len(shared)),
    )  # fmt: skip


def _waits(dynamic: Dynamic, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of instructions in this order: where the waits of each begin, and all of them as (queue, completions)."""
    rows, queues, counts = dynamic.needs()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    there = np.flatnonzero(counts > 0)
    chosen = there[np.argsort(place[rows[there]], kind="stable")]
    first = np.searchsorted(place[rows[chosen]], np.arange(len(order) + 1))
    return first, np.stack([queues[chosen], counts[chosen]], axis=1)


def _result(dynamic: Dynamic, timed: Timed, times: Times) -> Clock:
    order = _by_queue(dynamic)
    start, end, done, waited, why, turn = (np.zeros(len(dynamic), np.int64) for _ in range(6))
    start[order], end[order], done[order] = times.starts, times.starts + timed.busy, times.done
    waited[order], why[order] = times.waited, times.why
    stalls, total = [[0] * (len(QUEUES) + 2) for _ in QUEUES], 0
    for queue, (first, last) in enumerate(pairwise(timed.first.tolist())):
        its, rows = slice(first, last), order[first:last]
        total = max(total, int(times.done[last - 1]) if last > first else 0)
        if queue in _DMA:
            turn[rows] = times.starts[its] - np.cumsum(times.waited[its]) - timed.latency[its]
            stalls[queue][BUS] = int(turn[rows].sum())
        for other in np.unique(times.why[its]).tolist():
            if other >= 0:
                stalls[queue][other] = int(times.waited[its][times.why[its] == other].sum())
    return Clock(start, end, done, waited, why.astype(np.int8), turn, total, stalls)
