"""timeline: one run on a time axis, as values that both trace formats are written from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tvm_neuron.isa import QUEUES
from tvm_neuron.profile.counters import count
from tvm_neuron.profile.recording import Arrow, Recording, written_bytes
from tvm_neuron.profile.run import Argument, CoreRun, Run, Slice
from tvm_neuron.sim.clock import PS_PER_SECOND

_PS_PER_NS = 1e3


@dataclass(frozen=True, slots=True)
class Counter:
    """A value that holds until the next time."""

    name: str
    unit: str
    times_ps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True)
class Process:
    """A program on a core, or what lies between; the slices of a row are in order, arrows join slices by number."""

    name: str
    slices: Sequence[Slice]
    arrows: Sequence[Arrow] = field(default=())
    counters: Sequence[Counter] = field(default=())

    @property
    def rows(self) -> list[str]:
        """The rows that have slices: queues in their order, others in that of their first slice."""
        order = {queue: place for place, queue in enumerate(QUEUES)}
        return sorted(dict.fromkeys(one.row for one in self.slices), key=lambda row: order.get(row, len(order)))


def timeline(run: Run) -> list[Process]:
    """The host, the programs in their order, and the links between chips, as far as there are any."""
    found = [Process("host", run.host)] if run.host else []
    found += [_process(core) for core in run.cores]
    return found + ([Process("links between chips", run.links)] if run.links else [])


def _process(core: CoreRun) -> Process:
    recording = core.recording
    counters = count(recording)
    times = (counters.edges_ps + core.begin_ps).tolist()
    seconds = (counters.edges_ps[1:] - counters.edges_ps[:-1]) / PS_PER_SECOND
    values = {
        ("DRAM", "GB/s"): counters.dram_bytes / seconds / 1e9,
        ("PE utilisation", "%"): counters.macs / seconds / recording.neff.device.peak_macs_per_second * 100,
        ("SBUF", "bytes"): counters.taken_bytes["sbuf"],
        ("PSUM", "bytes"): counters.taken_bytes["psum"],
    }
    curves = [Counter(name, unit, times, [*found.tolist(), 0]) for (name, unit), found in values.items()]
    return Process(core.name, list(_slices(recording, core.begin_ps)), list(recording.arrows()), curves)


def _slices(recording: Recording, begin: int) -> Iterator[Slice]:
    """One for each dynamic instruction, in the order of the program."""
    dynamic, clock = recording.dynamic, recording.clock
    fixed = list(_fixed(recording))
    columns = (dynamic.number, clock.start, clock.end, clock.waited, clock.turn, dynamic.index)
    for row, (number, start, end, waited, turn, index) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        name, arguments = fixed[number]
        loops = len(dynamic.counts[number])
        changing: dict[str, Argument] = {}
        if loops:
            changing["iteration"] = " ".join(f"i{depth}={at}" for depth, at in enumerate(index[:loops]))
        if waited:
            changing |= {"waited ns": waited / _PS_PER_NS, "waited for": recording.reason(row)}
        if turn:
            changing["waited ns for its turn at the DRAM"] = turn / _PS_PER_NS
        yield Slice(dynamic.statics[number].queue, begin + start, begin + end, name, arguments | changing)


def _fixed(recording: Recording) -> Iterator[tuple[str, dict[str, Argument]]]:
    """Name and arguments of each static instruction."""
    origins = recording.neff.program.origins
    for one, cost, size in zip(recording.dynamic.statics, recording.costs, written_bytes(recording), strict=True):
        origin = origins[one.origin]
        arguments: dict[str, Argument] = {
            "operator": origin.name,
            "type": origin.op,
            "instruction": one.mnemonic,
            "cycles": cost.busy_cycles,
            "bytes written": size,
        }
        if cost.dram_bytes:
            arguments["DRAM bytes"] = cost.dram_bytes
        if cost.macs:
            arguments["multiplications"] = cost.macs
        arguments |= {f"operand {name}": kind.print(getattr(one, name)) for name, kind in one.kinds()}
        arguments |= {f"waits for {wait.queue}": str(wait) for wait in one.waits}
        yield f"{origin.name or origin.op}: {one.mnemonic}", arguments
