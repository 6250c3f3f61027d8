"""list_schedules: the kernels of a stage in orders in which engines wait less, by what each kernel has become.

Every engine works in the order of the program, so what it does for one kernel waits behind all before. List scheduling:
of the kernels that could begin first, the one comes next behind which most is to come.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import Device
from tvm_neuron.isa.engines import BY_QUEUE, COMPUTE, of_dma
from tvm_neuron.program import Node
from tvm_neuron.program.program import walk
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.sums import sums_on_the_way
from tvm_neuron.sim.clock import clock_hz, duration_ps

_DMA = "dma"


@dataclass(frozen=True)
class _Guess:
    """What the costs of kernels don't tell.

    From a result to the first instruction that reads it are `latency_ps`, of waits that the program has besides. DRAM
    brings all weights in their order, or in time. A kernel comes at most `ahead` places before its own.
    """

    latency_ps: int
    brings_in_order: bool
    ahead: int


_GUESSES = (_Guess(600_000, False, 60), _Guess(150_000, True, 60), _Guess(300_000, False, 20))


@dataclass(frozen=True)
class _Engine:
    """What a kernel takes of one: from the first instruction to the last, and one of them, in ps."""

    name: str
    busy_ps: int
    each_ps: int


@dataclass(frozen=True)
class _Work:
    """What a kernel takes of the engines, in the order in which it needs them, and of the DRAM; in ps."""

    engines: tuple[_Engine, ...]
    dram_ps: int
    dram_latency_ps: int


def list_schedules(stage: Stage, nodes: Sequence[Sequence[Node]], device: Device) -> Iterator[Stage]:
    """The stage in another order for each guess; `nodes` are what each of its kernels has become."""
    parts = [Part(kernel, number, 0, {}) for number, kernel in enumerate(stage.kernels)]
    find_dependences(parts, stage.partition_of)
    works = [_work(its, device) for its in nodes]
    sums = sums_on_the_way(stage.kernels)
    tied = {part: after for part, after in pairwise(parts) if part.kernel in sums}
    seen = [stage.kernels]
    for guess in _GUESSES:
        kernels = _List(parts, works, tied, guess).run()
        if kernels not in seen:
            seen.append(kernels)
            yield replace(stage, kernels=kernels)


def _work(nodes: Sequence[Node], device: Device) -> _Work:
    busy: dict[str, int] = {}
    count: dict[str, int] = {}
    dram_latency = 0
    for counts, instruction in walk(tuple(nodes)):
        name, cost, times = BY_QUEUE[instruction.queue].name, instruction.cost(device), prod(counts)
        hz = clock_hz(device, name)
        busy[name] = busy.get(name, 0) + times * duration_ps(cost.busy_cycles, hz)
        count[name] = count.get(name, 0) + times
        if of_dma(instruction.queue):
            dram_latency = max(dram_latency, duration_ps(cost.latency_cycles, hz))
    dram = busy.pop(_DMA, 0)
    return _Work(tuple(_Engine(name, ps, ps // count[name]) for name, ps in busy.items()), dram, dram_latency)


@dataclass(frozen=True)
class _Run:
    """When a kernel begins, is done, and from when on engines are free then."""

    begin: int
    done: int
    free: Mapping[str, int]


class _List:
    """The kernels that are to come, and those of them that wait for nothing but engines.

    `tied` are sums that engines take while they make what is added up: they come right behind that.
    """

    def __init__(self, parts: Sequence[Part], works: Sequence[_Work], tied: Mapping[Part, Part], guess: _Guess) -> None:
        self.parts, self.works, self.tied, self.guess = parts, works, tied, guess
        self.followers: dict[Part, list[Part]] = {part: [] for part in parts}
        for part in parts:
            for other in part.after:
                self.followers[other].append(part)
        self.left_ps: dict[Part, int] = {}  # from its begin to the end of all that needs it
        for part in reversed(parts):
            behind = max((self.left_ps[other] for other in self.followers[part]), default=0)
            self.left_ps[part] = self._alone_ps(part) + behind
        self.waits = {part: len(part.after) for part in parts}
        self.ready = {part: 0 for part in parts if not part.after}
        self.done: dict[Part, int] = {}
        self.free: Mapping[str, int] = dict.fromkeys((*COMPUTE, _DMA), 0)

    def run(self) -> list[Kernel]:
        """All kernels."""
        for oldest in self.parts:
            while oldest not in self.done:
                self._take(*self._next(oldest))
        return [part.kernel for part in self.done]

    def _next(self, oldest: Part) -> tuple[Part, _Run]:
        last = oldest.number + self.guess.ahead
        runs = {part: self._run(part) for part in self.ready if part.number <= last}
        first = min(run.begin for run in runs.values())
        begins = [part for part, run in runs.items() if run.begin == first]
        best = min(begins, key=lambda part: (not part.kernel.by_dma, -self.left_ps[part], part.number))
        return best, runs[best]

    def _take(self, part: Part, run: _Run) -> None:
        del self.ready[part]
        self.free, self.done[part] = run.free, run.done
        for follower in self.followers[part]:
            self.waits[follower] -= 1
            if not self.waits[follower]:
                self.ready[follower] = max(self.done[other] for other in follower.after)
        after = self.tied.get(part)
        if after in self.ready:
            self._take(after, self._run(after))

    def _alone_ps(self, part: Part) -> int:
        """What it takes where nothing else is at work: the slowest engine's time, and an instruction of others."""
        work = self.works[part.number]
        if part.kernel.by_dma:
            return work.dram_latency_ps + work.dram_ps
        longest = max((engine.busy_ps - engine.each_ps for engine in work.engines), default=0)
        return longest + sum(engine.each_ps + self.guess.latency_ps for engine in work.engines)

    def _run(self, part: Part) -> _Run:
        """What becomes of the engines if it comes next: each begins when the one before has done a first piece."""
        work, free, begin = self.works[part.number], dict(self.free), self.ready[part]
        if part.kernel.by_dma:
            begin = max(begin, free[_DMA])
            free[_DMA] = begin + work.dram_ps
            return _Run(begin, free[_DMA] + work.dram_latency_ps, free)
        if self.guess.brings_in_order and work.dram_ps:
            free[_DMA] += work.dram_ps
            begin = max(begin, free[_DMA])
        latency, starts, end = self.guess.latency_ps, [], begin
        for engine in work.engines:
            starts.append(max(free[engine.name], begin))
            end = max(starts[-1] + engine.busy_ps, end + engine.each_ps)
            free[engine.name] = end
            begin, end = starts[-1] + engine.each_ps + latency, end + latency
        return _Run(starts[0] if starts else begin, end, free)
