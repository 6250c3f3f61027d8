"""order: instructions in an order in which no engine waits long for another while the kernel has other work for it.

List scheduling, as the compiler's own for tiles (`codegen/tiles/reorder.py`): of the next few instructions that could
follow, that one comes next which could begin first, later the more it comes ahead.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tvm_neuron.isa import DramTile, Instruction
from tvm_neuron.isa.engines import BY_NAME, of_dma
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.fit import block_bytes, uses_of
from tvm_neuron.nki.trace import Trace

_AHEAD = 32  # instructions that are looked at
_LATER_US = 0.1  # for each one that it comes ahead of
_ROOM = 3 / 4  # of SBUF: what comes ahead keeps within it, or within what the kernel needs


def ordered(trace: Trace, records: list[Record]) -> list[Record]:
    """The records in such an order, where the dialect's compiler chooses one; as they are where the kernel places.

    No more room is needed than as they are, or than `_ROOM`.
    """
    return _Order(trace, records).run() if trace.dialect.orders and not trace.is_placed else records


@dataclass
class _Order:
    trace: Trace
    records: Sequence[Record]
    free: dict[str, float] = field(default_factory=dict)  # by queue: from when on it is free, us
    done: dict[int, float] = field(default_factory=dict)  # when the records that were placed are done
    bus_free: float = 0.0

    def run(self) -> list[Record]:
        """All records, placed."""
        self.before = list(_before(self.records))
        self.times = [self._times(record.instruction) for record in self.records]
        self._measure()
        pending = list(range(len(self.records)))
        found = []
        while pending:
            place = min(self._possible(pending), key=lambda place: self._start(pending[place]) + place * _LATER_US)
            number = pending.pop(place)
            self._place(number, pending[0] if pending else number + 1)
            found.append(self.records[number])
        return found

    def _measure(self) -> None:
        """What is needed of each partition at each step, if all that was not placed yet follows as it was written."""
        device = self.trace.device
        self.last: dict[Place, int] = {}  # the step at which a tile is used last
        self.uses: dict[Place, int] = {}  # that are still to come
        self.begins: dict[int, list[Place]] = {}  # by step: tiles that are new
        self.needs = {memory: np.zeros(len(self.records) + 1, np.int64) for memory in ("sbuf", "psum")}
        for memory, needs in self.needs.items():
            for place, steps in uses_of(self.trace, list(self.records), memory).items():
                self.last[place], self.uses[place] = steps[-1], len(steps)
                self.begins.setdefault(steps[0], []).append(place)
                needs[steps[0]] += self._bytes(place)
                needs[steps[-1] + 1] -= self._bytes(place)
            np.cumsum(needs, out=needs)
        room = max(int(device.sbuf_bytes_per_partition * _ROOM), int(self.needs["sbuf"].max()))
        self.room = {"sbuf": room, "psum": device.psum_bytes_per_partition}

    def _possible(self, pending: Sequence[int]) -> Iterator[int]:
        """The places of records that may come next."""
        yield 0
        for place, number in enumerate(pending[1:_AHEAD], 1):
            if self.done.keys() >= self.before[number][0] and self._fits(number, pending[0]):
                yield place

    def _fits(self, number: int, head: int) -> bool:
        """Whether there is room for the tiles that it begins until where it stands."""
        new = Counter[str]()
        for place in self.begins.get(number, ()):
            new[self.trace.tensors[place[0]].memory] += self._bytes(place)
        return all(self.needs[memory][head:number].max() + size <= self.room[memory] for memory, size in new.items())

    def _bytes(self, place: Place) -> int:
        """What a tile takes of each partition; of PSUM whole banks."""
        size, bank = block_bytes(self.trace, place), self.trace.device.psum_bank_bytes
        return -(-size // bank) * bank if self.trace.tensors[place[0]].memory == "psum" else size

    def _place(self, number: int, head: int) -> None:
        """Puts a record next; the first of those after it is `head`."""
        record, start, (busy, late) = self.records[number], self._start(number), self.times[number]
        queue = record.instruction.queue
        if of_dma(queue):
            self.free[queue] = start
            self.done[number] = self.bus_free = max(self.bus_free, start + late) + busy
        else:
            self.free[queue] = start + busy
            self.done[number] = start + busy + late
        for place in self.begins.get(number, ()):
            self.needs[self.trace.tensors[place[0]].memory][head:number] += self._bytes(place)
        for place in dict.fromkeys(record.places.values()):
            self.uses[place] -= 1
            if not self.uses[place]:
                self.needs[self.trace.tensors[place[0]].memory][head : self.last[place] + 1] -= self._bytes(place)

    def _start(self, number: int) -> float:
        ready = max((self.done[other] for other in self.before[number][1]), default=0.0)
        return max(ready, self.free.get(self.records[number].instruction.queue, 0.0))

    def _times(self, instruction: Instruction) -> tuple[float, float]:
        """Microseconds for which it keeps its engine, and until its result is there."""
        cost, hz = instruction.cost(self.trace.device), BY_NAME[instruction.engine].clock_hz(self.trace.device)
        return cost.busy_cycles * 1e6 / hz, cost.latency_cycles * 1e6 / hz


def _before(records: Sequence[Record]) -> Iterator[tuple[set[int], set[int]]]:
    """For each record those before it that must come first, and those of them whose results it waits for."""
    writer: dict[object, int] = {}
    readers: dict[object, set[int]] = {}
    for number, record in enumerate(records):
        read, written = set[object](), set[object]()
        for name, kind, tile in record.instruction.tiles():
            key: object = tile.tensor if isinstance(tile, DramTile) else record.places[name]
            if kind.role != "writes":
                read.add(key)
            if kind.role != "reads":
                written.add(key)
        waits = {writer[key] for key in read if key in writer}.union(*(readers.get(key, ()) for key in written))
        queue = record.instruction.queue
        if not BY_NAME[record.instruction.engine].reads_late:
            waits = {other for other in waits if records[other].instruction.queue != queue}
        first = {writer[key] for key in read | written if key in writer}
        yield first.union(*(readers.get(key, ()) for key in written)), waits
        for key in read:
            readers.setdefault(key, set()).add(number)
        for key in written:
            writer[key], readers[key] = number, set()
