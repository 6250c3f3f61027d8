"""What the page tells beside the report: DRAM traffic by cause and by tensor, and operators beside their rooflines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_neuron.isa import QUEUES, DramTile
from tvm_neuron.profile.recording import Recording
from tvm_neuron.profile.run import CoreRun
from tvm_neuron.program.traffic import dram_traffic

_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Cause:
    """Bytes over the DRAM for one reason in a run, and how long they alone keep it busy."""

    name: str
    bytes: int
    us: float


@dataclass(frozen=True, slots=True)
class Moved:
    """One tensor in device memory; `readers` and `writers` are the model's operators."""

    program: str
    name: str
    kind: str
    size: int
    read: int
    written: int
    readers: tuple[str, ...]
    writers: tuple[str, ...]
    again_us: float  # of the DRAM, for what was read more than once

    @property
    def times(self) -> float:
        """How often each byte is read."""
        return self.read / self.size


@dataclass(frozen=True, slots=True)
class Spilled:
    """A tensor that waits in DRAM for a while; `sbuf_share` is the most of SBUF that was in use meanwhile."""

    program: str
    name: str
    bytes: int
    begin_us: float
    end_us: float
    sbuf_share: float


@dataclass(frozen=True, slots=True)
class Operator:
    """What one operator's instructions did, and the least that this takes on the PE array and the DRAM."""

    name: str
    op: str
    us: float
    macs: int
    dram_bytes: int
    array_us: float
    dram_us: float
    array_share: float  # of the array's rows and columns that its products use, on average over the time

    @property
    def least_us(self) -> float:
        """Its roofline."""
        return max(self.array_us, self.dram_us)


def moved(cores: Sequence[CoreRun]) -> list[Moved]:
    """All tensors that a run moves, those that it reads again first."""
    found = []
    for core in cores:
        neff = core.recording.neff
        tensors = neff.program.tensors
        total = {"reads": [0] * len(tensors), "writes": [0] * len(tensors)}
        for index, role, size in dram_traffic(neff.program):
            total[role][index] += size
        who: dict[str, list[dict[str, None]]] = {role: [{} for _ in tensors] for role in total}
        for _, one in neff.program.instructions():
            for _, kind, tile in one.tiles():
                if isinstance(tile, DramTile):
                    who[kind.role][tile.tensor][neff.program.origins[one.origin].name] = None
        for index, tensor in enumerate(tensors):
            read, written = total["reads"][index], total["writes"][index]
            again = max(0, read - tensor.size_bytes) / neff.device.dram_bytes_per_second * _US_PER_S
            readers, writers = (tuple(who[role][index]) for role in ("reads", "writes"))
            if read or written:
                about = (core.name, tensor.name, tensor.kind, tensor.size_bytes)
                found.append(Moved(*about, read, written, readers, writers, again))
    return sorted(found, key=lambda row: (-row.again_us, -row.read - row.written))


def spilled(core: CoreRun) -> list[Spilled]:
    """What one program puts into DRAM and takes back, in the order of its tensors."""
    one = core.recording
    times, taken = one.lives.taken("sbuf")
    found = []
    for index, tensor in enumerate(one.neff.program.tensors):
        lives = [life for life in one.lives.lives if life.place == index]
        if tensor.kind == "scratch" and lives:
            begin, end = min(life.start_ps for life in lives), max(life.end_ps for life in lives)
            first, last = np.searchsorted(times, [begin, end], "right")
            most = int(taken[max(0, first - 1) : last].max(initial=0))
            share = most / one.neff.device.sbuf_bytes
            found.append(Spilled(core.name, tensor.name, tensor.size_bytes, begin / 1e6, end / 1e6, share))
    return found


def causes(tensors: Sequence[Moved], dram_bytes_per_second: int) -> list[Cause]:
    """The traffic by cause; their sum is all of it."""
    sums: dict[str, int] = {}
    for row in tensors:
        once = min(row.read, row.size)
        parts = {
            "weight": {"weights, once": once, "weights, again": row.read - once},
            "input": {"inputs, once": once, "inputs, again": row.read - once},
            "output": {"outputs": row.written, "outputs, read back": row.read},
            "scratch": {"spills, written": row.written, "spills, read": row.read},
        }[row.kind]
        for name, size in parts.items():
            sums[name] = sums.get(name, 0) + size
    return [Cause(name, size, size / dram_bytes_per_second * _US_PER_S) for name, size in sums.items() if size]


def operators(core: CoreRun, wall_us: Sequence[float]) -> list[Operator]:
    """Those of one program that have instructions."""
    one = core.recording
    device, origins = one.neff.device, one.neff.program.origins
    macs, dram = (_by_origin(one, name).tolist() for name in ("macs", "dram_bytes"))
    busy = np.bincount(one.origin, _array_ps(one), len(origins)).tolist()
    found = []
    for index in np.unique(one.origin).tolist():
        at_peak = macs[index] / device.peak_macs_per_second
        found.append(
            Operator(
                origins[index].name,
                origins[index].op,
                wall_us[index],
                int(macs[index]),
                int(dram[index]),
                at_peak * _US_PER_S,
                dram[index] / device.dram_bytes_per_second * _US_PER_S,
                at_peak * 1e12 / busy[index] if busy[index] else 0.0,
            )
        )
    return found


def _array_ps(one: Recording) -> np.ndarray:
    """How long each dynamic instruction keeps the PE array."""
    return np.where(one.dynamic.queue == QUEUES.index("pe"), one.clock.end - one.clock.start, 0)


def _by_origin(one: Recording, name: str) -> np.ndarray:
    return np.bincount(one.origin, one.cost_of(name), len(one.neff.program.origins))
