"""order: instructions in an order in which no engine waits long for another while the kernel has other work for it.

List scheduling, as the compiler's own for tiles (`codegen/tiles/reorder.py`): of the next few instructions that could
follow, that one comes next which could begin first, later the more it comes ahead.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tvm_neuron.isa import DramTile, Instruction
from tvm_neuron.isa.engines import BY_NAME, of_dma
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.fit import block_bytes, peak
from tvm_neuron.nki.trace import Trace

_AHEAD = 32  # instructions that are looked at
_LATER_US = 0.1  # for each one that it comes ahead of
_ROOM = 3 / 4  # of SBUF: what comes ahead keeps within it


def ordered(trace: Trace, records: list[Record]) -> list[Record]:
    """The records in such an order, where the dialect's compiler chooses one.

    As they are where the kernel gives addresses, or where not all tiles fit, since spills follow the kernel's order.
    """
    if trace.is_placed or not trace.dialect.orders:
        return records
    room = trace.device.sbuf_bytes_per_partition * _ROOM
    return _Order(trace, records).run() if peak(trace, records) <= room else records


@dataclass
class _Order:
    trace: Trace
    records: Sequence[Record]
    free: dict[str, float] = field(default_factory=dict)  # by queue: from when on it is free, us
    done: dict[int, float] = field(default_factory=dict)  # when the records that were placed are done
    bus_free: float = 0.0
    alive: set[Place] = field(default_factory=set)
    taken: Counter[str] = field(default_factory=Counter)  # by memory: bytes of each partition

    def run(self) -> list[Record]:
        """All records, placed."""
        self.before = list(_before(self.records))
        self.times = [self._times(record.instruction) for record in self.records]
        self.uses = Counter(place for record in self.records for place in self._tiles(record))
        device = self.trace.device
        self.room = {"sbuf": device.sbuf_bytes_per_partition * _ROOM, "psum": device.psum_bytes_per_partition}
        pending = list(range(len(self.records)))
        found = []
        while pending:
            place = min(self._possible(pending), key=lambda place: self._start(pending[place]) + place * _LATER_US)
            number = pending.pop(place)
            self._place(number)
            found.append(self.records[number])
        return found

    def _possible(self, pending: Sequence[int]) -> Iterator[int]:
        """The places of records that may come next."""
        yield 0
        for place, number in enumerate(pending[1:_AHEAD], 1):
            if self.done.keys() >= self.before[number][0]:
                new = self._tiles(self.records[number]) - self.alive
                if not new or self._fits(new):
                    yield place

    def _fits(self, new: set[Place]) -> bool:
        """Whether there is room for further tiles."""
        taken = self.taken.copy()
        for place in new:
            taken[self.trace.tensors[place[0]].memory] += self._bytes(place)
        return all(taken[memory] <= most for memory, most in self.room.items())

    def _bytes(self, place: Place) -> int:
        """What a tile takes of each partition; of PSUM whole banks."""
        size, bank = block_bytes(self.trace, place), self.trace.device.psum_bank_bytes
        return -(-size // bank) * bank if self.trace.tensors[place[0]].memory == "psum" else size

    def _tiles(self, record: Record) -> set[Place]:
        """Its tiles on chip."""
        return set(record.places.values())

    def _place(self, number: int) -> None:
        record, start, (busy, late) = self.records[number], self._start(number), self.times[number]
        queue = record.instruction.queue
        if of_dma(queue):
            self.free[queue] = start
            self.done[number] = self.bus_free = max(self.bus_free, start + late) + busy
        else:
            self.free[queue] = start + busy
            self.done[number] = start + busy + late
        tiles = self._tiles(record)
        for place in tiles - self.alive:
            self.taken[self.trace.tensors[place[0]].memory] += self._bytes(place)
        self.alive |= tiles
        self.uses.subtract(tiles)
        for place in tiles:
            if not self.uses[place]:
                self.alive.discard(place)
                self.taken[self.trace.tensors[place[0]].memory] -= self._bytes(place)

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
