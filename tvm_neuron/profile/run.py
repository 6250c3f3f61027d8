"""run_of: one run of what a library does from end to end: its programs, the host's transfers and CPU parts in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_instance
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile.pipeline import way_of_an_input
from tvm_neuron.profile.recording import Recording, record
from tvm_neuron.profile.transfers import FROM_CORE, TO_CORE, transfers

MAX_EVENTS = 1_000_000
_PS_PER_US = 1e6

Argument = str | int | float


@dataclass(frozen=True, slots=True)
class CpuPart:
    """What a library does on the CPU between two programs; how long that takes is not modelled."""

    name: str


Part = Pipeline | CpuPart


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that a row of a process did; an instant if it begins when it ends."""

    row: str
    begin_ps: int
    end_ps: int
    name: str
    arguments: Mapping[str, Argument]


@dataclass(frozen=True, slots=True)
class CoreRun:
    """One program on one core, from `begin_ps` on."""

    name: str
    core: int
    begin_ps: int
    recording: Recording


@dataclass(frozen=True, slots=True)
class Run:
    """The cores' programs in turn; what the host moves and computes; what passes the links between chips."""

    cores: Sequence[CoreRun]
    host: Sequence[Slice]
    links: Sequence[Slice]
    end_ps: int


def run_of(parts: Sequence[Part], with_host: bool = True) -> Run:
    """One run, part by part; with what the host moves, or as if all were there already.

    Of several cores, one input on its way through all: each begins when the one before is done and what it makes is
    there. Of cores that take inputs in turn, it has the last.

    Raises:
        ProgramError: there are more than `MAX_EVENTS` instructions, which no viewer opens; or a program deadlocks.
    """
    cores: list[CoreRun] = []
    host: list[Slice] = []
    links: list[Slice] = []
    now = 0
    for part in parts:
        if isinstance(part, CpuPart):
            host.append(Slice("CPU", now, now, part.name, {"time": "not modelled"}))
            continue
        now = _move(part, TO_CORE, now, host) if with_host else now
        now = _pipeline(part, now, cores, links)
        now = _move(part, FROM_CORE, now, host) if with_host else now
    return Run(cores, host, links, now)


def _move(part: Pipeline, direction: str, now: int, host: list[Slice]) -> int:
    """Adds what crosses the host's link in one direction; when that is through."""
    for row in transfers([part]):
        if row.direction == direction:
            end = now + round(row.link_us * _PS_PER_US)
            host.append(Slice(f"link {direction}", now, end, row.tensor, {"subgraph": part.name, "bytes": row.bytes}))
            now = end
    return now


def _pipeline(part: Pipeline, begin: int, cores: list[CoreRun], links: list[Slice]) -> int:
    """Adds a program on one or several cores; when the last one is through."""
    first = part.cores[0]
    instance = load_instance(str(first.options.get("instance", "")), first.device)
    recorded: list[Recording] = []
    for neff in part.cores:
        recorded.append(record(neff))
        total = sum(len(one.dynamic) for one in recorded) + sum(len(one.recording.dynamic) for one in cores)
        if total > MAX_EVENTS:
            most = f"at most {MAX_EVENTS:,} can be shown"
            raise ProgramError(f"a timeline of {total:,} instructions is too large; {most}")
    taken = [one.clock.total for one in recorded]
    begins, passed = way_of_an_input(part, taken, instance)
    for core, at, one in zip(part.last_cores, begins, recorded, strict=True):
        name = f"{part.name}, core {core}" if len(recorded) > 1 else part.name
        cores.append(CoreRun(name, core, begin + at, one))
    for chip, start, end in passed:
        links.append(Slice(f"from chip {chip}", begin + start, begin + end, f"{part.name} to the next chip", {}))
    return begin + begins[-1] + taken[-1]
