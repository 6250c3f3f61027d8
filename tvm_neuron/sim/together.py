"""together: programs on the cores of an instance at the same time, which share the DRAM of their chip and its links.

Each core has a clock of its own. The next transfer of all cores is the one that could start first: it keeps the core's
own DMA engines for its time, and the chip's DRAM for its bytes at the chip's rate, after those of cores that came
before. What an input leaves behind for a stage on another chip is read from the one DRAM and written to the next over
the port between the two, in turn with what else goes that way.

It is a line under full load: before each stage wait as many inputs as it has cores, and as many on the way to it where
it lies on another chip, and there is room for as many more. A core begins when it is done with its last input, the next
has come, and there is room for what it makes of that.

All lines go on until the inputs of each are counted, each over a time of its own; what these times together would have
a DRAM or a port carry beyond its rate is taken off again.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import lcm

from tvm_neuron.hw import Device, Instance
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import expand
from tvm_neuron.sim.clock import PS_PER_SECOND, CoreClock, duration_ps
from tvm_neuron.sim.dependence import dependent

_PS_PER_NS = 1000
_DRAM, _PORT = "DRAM", "port to the next"
_Part = tuple[str, int]  # what cores share, and the chip that has it
_FEWEST = 2  # inputs, at least, over which the time is taken


@dataclass(frozen=True)
class Line:
    """Programs that an input goes through, each on so many cores that take inputs in turn, the first at `first_core`.

    `carried` are the bytes of an input that pass from a chip to the next.
    """

    programs: Sequence[Program]
    device: Device
    replicas: Sequence[int]
    carried: Mapping[int, int] = field(default_factory=dict)
    first_core: int = 0


@dataclass
class Shared:
    """Something that several cores need, which takes one's bytes after the other's."""

    bytes_per_second: int
    free_ps: int = 0

    def carry(self, start_ps: int, size_bytes: int) -> int:
        """When it is through with so many bytes that are there from `start_ps` on."""
        self.free_ps = max(self.free_ps, start_ps) + duration_ps(size_bytes, self.bytes_per_second)
        return self.free_ps


@dataclass
class _Stage:
    """One program of a line: its cores' clocks, and when each input came, was begun and was done with."""

    clocks: list[CoreClock]
    chips: list[int]
    after: "_Stage | None"
    way: list[tuple[int, int]]  # chips whose ports lead to the next stage, and the bytes that pass
    pass_ps: int  # until a transfer to the next chip starts
    is_fed: bool = False  # whether its inputs wait from the start, however many it takes
    begun: int = 0
    came: dict[int, int] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)

    @property
    def ahead(self) -> int:
        """By how many inputs the next stage is behind."""
        return len(self.after.clocks) * (2 if self.way else 1) if self.after else 0

    def begin_at(self) -> int | None:
        """When the next input can be begun; None where that is not known yet."""
        at, cores = self.begun, len(self.clocks)
        needed = [(self.done, at - cores)] + ([] if self.is_fed else [(self.came, at)])
        if self.after is not None:
            needed.append((self.after.done, at - len(self.after.clocks)))
        times = [0 if number < 0 else times.get(number) for times, number in needed]
        return None if None in times else max(time for time in times if time is not None)


def interval_ps(lines: Sequence[Line], instance: Instance) -> list[float]:
    """The time between two inputs of each line where all of them are under load.

    Raises:
        ProgramError: a program deadlocks.
    """
    lots = [_stages(line, instance) for line in lines]
    spans = []
    for line, lot in zip(lines, lots, strict=True):
        first = max(stage.ahead for stage in lot)  # the last that was there from the start
        spans.append((first, first + max(_FEWEST, lcm(*line.replicas))))
        lot[-1].is_fed = True
    # A line whose inputs are counted goes on until all others' are: the last of them have its load beside them, too.
    _Run(instance, [(stage, last + 1) for lot, (_, last) in zip(lots, spans, strict=True) for stage in lot]).run()
    found = []
    for lot, (first, last) in zip(lots, spans, strict=True):
        ends = [sorted(stage.done.values()) for stage in lot]
        found.append(max(times[last] - times[first] for times in ends) / (last - first))
    return _sustained(found, [_brought(lot) for lot in lots], instance)


def _sustained(intervals: list[float], brought: Sequence[Mapping[_Part, int]], instance: Instance) -> list[float]:
    """Intervals at which no DRAM and no port carries more than its rate, of lines that bring so many bytes an input.

    Each line's inputs are counted over a time of its own, and while one gets ahead another falls behind: together they
    would seem to have a little more than there is, and without end they can't.
    """
    rates = {_DRAM: instance.chip_dram_bytes_per_second, _PORT: instance.link_bytes_per_second}
    found = list(intervals)
    for part in sorted({part for line in brought for part in line}):
        users = [at for at, line in enumerate(brought) if line.get(part)]
        asked = sum(brought[at][part] * PS_PER_SECOND / found[at] for at in users)
        for at in users:
            found[at] *= max(1.0, asked / rates[part[0]])
    return found


def _brought(lot: Sequence[_Stage]) -> dict[_Part, int]:
    """What an input of a line has each DRAM and each port carry; cores that take inputs in turn have a part each."""
    found: dict[_Part, int] = defaultdict(int)
    for stage in lot:
        for clock, chip in zip(stage.clocks, stage.chips, strict=True):
            found[_DRAM, chip] += sum(map(sum, clock.dram_bytes)) // len(stage.clocks)
        for chip, size in stage.way:
            for part in ((_DRAM, chip), (_PORT, chip), (_DRAM, chip + 1)):
                found[part] += size
    return found


def ends_ps(programs: Sequence[Program], device: Device, instance: Instance) -> list[int]:
    """When each of an instance's first cores is through with its program, if all begin at 0, once.

    Raises:
        ProgramError: a program deadlocks.
    """
    clocks = {id(program): _clock_of(program, device) for program in programs}
    stages = [
        _Stage([copy(clocks[id(program)])], [instance.chip_of(core)], None, [], 0, came={0: 0})
        for core, program in enumerate(programs)
    ]
    _Run(instance, [(stage, 1) for stage in stages]).run()
    return [stage.done[0] for stage in stages]


def _clock_of(program: Program, device: Device) -> CoreClock:
    dynamic = expand(program)
    costs = [instruction.cost(device) for instruction in dynamic.statics]
    return CoreClock(program, device, dynamic, costs, dependent(dynamic))


def _stages(line: Line, instance: Instance) -> list[_Stage]:
    """The stages of a line, the last first."""
    found: list[_Stage] = []
    last_chip, core = 0, line.first_core + sum(line.replicas)
    for program, count in zip(reversed(line.programs), reversed(line.replicas), strict=True):
        clock = _clock_of(program, line.device)
        core -= count
        chips = [instance.chip_of(core + at) for at in range(count)]
        way = [(chip, line.carried.get(chip, 0)) for chip in range(chips[-1], last_chip)] if found else []
        pass_ps = line.device.dma_start_ns * _PS_PER_NS
        stage = _Stage([copy(clock) for _ in range(count)], chips, found[-1] if found else None, way, pass_ps)
        last_chip = chips[-1]
        found.append(stage)
    for stage in found:
        if stage.after:
            stage.after.came = dict.fromkeys(range(stage.ahead), 0)
    return found


class _Run:
    """All stages, with how many inputs each must be through with before the run ends."""

    def __init__(self, instance: Instance, stages: Sequence[tuple[_Stage, int]]) -> None:
        self.stages, self.instance = stages, instance
        self.behind = {number for number, (_, inputs) in enumerate(stages) if inputs}
        self.dram: dict[int, Shared] = defaultdict(lambda: Shared(instance.chip_dram_bytes_per_second))
        self.port: dict[int, Shared] = defaultdict(lambda: Shared(instance.link_bytes_per_second))  # to the next chip
        self.running: dict[tuple[int, int], int] = {}  # (stage, its core): which input
        self.passing: list[tuple[int, int, int, int]] = []  # start, stage, input, step of its way

    def run(self) -> None:
        """Until all stages are through with their inputs."""
        while self.behind:
            while any(map(self._begin, range(len(self.stages)))):
                pass
            first = min(self.running, key=lambda key: (self._clock(key).next_start, key), default=None)
            start = self._clock(first).next_start if first is not None else None
            if self.passing and (start is None or self.passing[0][0] <= start):
                self._pass(*heappop(self.passing))
            else:
                assert first is not None  # a program that waits for ever has raised
                stage, core = first
                self._clock(first).transfer(self.dram[self.stages[stage][0].chips[core]].carry)
                self._advance(first)

    def _clock(self, key: tuple[int, int]) -> CoreClock:
        return self.stages[key[0]][0].clocks[key[1]]

    def _begin(self, number: int) -> bool:
        """Begins the stage's next input if it can; whether it does."""
        stage, _ = self.stages[number]
        at = stage.begin_at()
        if at is None:
            return False
        key = number, stage.begun % len(stage.clocks)
        self.running[key] = stage.begun
        stage.begun += 1
        self._clock(key).begin(at)
        self._advance(key)
        return True

    def _advance(self, key: tuple[int, int]) -> None:
        """Runs a core to its next transfer, or to the end of its input."""
        clock = self._clock(key)
        if clock.run_to_transfer():
            return
        stage, inputs = self.stages[key[0]]
        at = self.running.pop(key)
        stage.done[at] = clock.end
        if len(stage.done) >= inputs:
            self.behind.discard(key[0])
        self._go_on(key[0], at, 0, clock.end)

    def _go_on(self, number: int, at: int, step: int, now: int) -> None:
        """Has an input pass the next port of its way, or come to the next stage."""
        stage, _ = self.stages[number]
        if stage.after is None:
            return
        if step < len(stage.way):
            heappush(self.passing, (now + stage.pass_ps, number, at, step))
        else:
            stage.after.came[at + stage.ahead] = now

    def _pass(self, start: int, number: int, at: int, step: int) -> None:
        chip, size = self.stages[number][0].way[step]
        through = [part.carry(start, size) for part in (self.dram[chip], self.port[chip], self.dram[chip + 1])]
        self._go_on(number, at, step + 1, max(through))
