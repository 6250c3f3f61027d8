"""fit: has what is loaded again and again loaded once where SBUF has room for it, and spills what it has no room for.

The allocation decides what goes and comes back (`allocation.turns`). A tile that holds what a load put there is simply
loaded again, also if it was stored before; any other is stored to device memory first.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from tvm_neuron.allocation.place import Buffer, peak_bytes
from tvm_neuron.allocation.turns import Turns
from tvm_neuron.isa import DmaCopy, DramTile, Tile, affine
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.trace import Trace

_KEPT = 3 / 4  # of SBUF: what is kept only to spare loads leaves a quarter for tiles that are used in turns
# What must be kept leaves as little as can be, since tiles of many sizes leave gaps: tried in turn.
FILLED = tuple(sixteenths / 16 for sixteenths in range(15, 7, -1))


@dataclass
class Fitted:
    """What fit did: loads that were left out, and bytes that were stored and loaded again for want of room."""

    loads: int = 0
    spared_bytes: int = 0  # of these loads
    saved_bytes: int = 0
    reloaded_bytes: int = 0


def fit(trace: Trace, records: list[Record], filled: float) -> tuple[list[Record], Fitted]:
    """The records with loads left out and spills put in, until no more than that part of SBUF is used at once."""
    done = Fitted()
    if trace.is_placed:
        return records, done
    capacity = trace.device.sbuf_bytes_per_partition
    needed = peak(trace, records)
    shared = _share(trace, records, done) if trace.dialect.hoists else records
    room = int(max(_KEPT * capacity, min(needed, filled * capacity)))
    return (shared if peak(trace, shared) <= room else _Filled(trace, shared, room, done).run()), done


def block_bytes(trace: Trace, place: Place) -> int:
    """Bytes of each partition that a logical tile takes in SBUF."""
    tensor = trace.tensors[place[0]]
    return -(-tensor.elems * size_bytes(tensor.dtype) // 32) * 32


def uses_of(trace: Trace, records: list[Record], memory: str) -> dict[Place, list[int]]:
    """The steps at which each logical tile in that memory is used."""
    found: dict[Place, list[int]] = {}
    for step, record in enumerate(records):
        for place in dict.fromkeys(record.places.values()):
            if trace.tensors[place[0]].memory == memory:
                found.setdefault(place, []).append(step)
    return found


def peak(trace: Trace, records: list[Record]) -> int:
    """The most bytes of a partition of SBUF that are alive at once."""
    uses = uses_of(trace, records, "sbuf")
    return peak_bytes(Buffer(p, block_bytes(trace, p), steps[0], steps[-1]) for p, steps in uses.items())


def _writes(record: Record) -> set[Place]:
    return {record.places[name] for name, _ in record.instruction.destinations if name in record.places}


def _share(trace: Trace, records: list[Record], done: Fitted) -> list[Record]:
    """Of tiles that only a load of the same constant place writes, the first stands for all."""
    writers = Counter(place for record in records for place in _writes(record))
    first: dict[object, Place] = {}
    same: dict[Place, Place] = {}
    found = []
    for record in records:
        if source := _constant_load(trace, record):
            place, tile = record.places["target"], record.instruction.destination
            tensor = trace.tensors[place[0]]
            key = (source, tile, tensor.partitions, tensor.elems, tensor.dtype)
            if writers[place] == 1 and first.setdefault(key, place) != place:
                same[place] = first[key]
                done.loads += 1
                done.spared_bytes += record.instruction.moved_bytes(source)
                continue
        places = {name: same.get(place, place) for name, place in record.places.items()}
        found.append(replace(record, places=places))
    return found


def _constant_load(trace: Trace, record: Record) -> DramTile | None:
    instruction = record.instruction
    if not isinstance(instruction, DmaCopy) or not isinstance(instruction.source, DramTile):
        return None
    is_constant = trace.tensors[instruction.source.tensor].kind in ("input", "weight")
    return instruction.source if is_constant and isinstance(instruction.target, Tile) else None


@dataclass
class _Block:
    """A logical tile that is, or was, in SBUF: where it is now, and the load that brings it back."""

    place: Place
    load: Record | None = None


@dataclass
class _Filled:
    """Writes what `Turns` decides as loads and stores."""

    trace: Trace
    records: list[Record]
    room: int
    done: Fitted
    found: list[Record] = field(default_factory=list)
    blocks: dict[Place, _Block] = field(default_factory=dict)

    def run(self) -> list[Record]:
        """The records with loads and stores put in."""
        writers = Counter(place for record in self.records for place in _writes(record))
        uses = uses_of(self.trace, self.records, "sbuf")
        sizes = {place: block_bytes(self.trace, place) for place in uses}
        turns = Turns(uses, sizes, self.room, self._moved_bytes)
        for step, record in enumerate(self.records):
            mine = {place for place in record.places.values() if place in uses}
            for place, comes in turns.at(step, mine):
                if comes:
                    self._bring(place, record)
                else:
                    self._store(place, record.at)
            now = {name: self.blocks[p].place if p in mine else p for name, p in record.places.items()}
            self.found.append(replace(record, places=now))
            for place in _writes(record) & mine:
                is_load = writers[place] == 1 and _constant_load(self.trace, record) is not None
                self.blocks[place].load = self.found[-1] if is_load else None
            turns.done(mine)
        return self.found

    def _moved_bytes(self, place: Place) -> int:
        """For a tile that goes: what a load put there, or was stored before, is only loaded again."""
        times = 1 if self.blocks[place].load is not None else 2
        return times * block_bytes(self.trace, place) * self.trace.tensors[place[0]].partitions

    def _bring(self, place: Place, record: Record) -> None:
        block = self.blocks.get(place)
        if block is None:
            self.blocks[place] = _Block(place)
            return
        assert block.load is not None
        tensor = self.trace.tensors[place[0]]
        block.place = self.trace.blank("sbuf", tensor.dtype, tensor.partitions, tensor.elems), 0
        block.load = Record(
            block.load.instruction.replace(ring=self.trace.ring(False)), {"target": block.place}, record.at
        )
        self.found.append(block.load)
        self.done.reloaded_bytes += block_bytes(self.trace, place) * tensor.partitions

    def _store(self, place: Place, at: str) -> None:
        block, tensor = self.blocks[place], self.trace.tensors[place[0]]
        if block.load is not None:
            return
        dtype, rows, elems = tensor.dtype, tensor.partitions, tensor.elems
        scratch = DramTile(self.trace.blank("hbm", dtype, rows, elems), dtype, affine(0), ((elems, rows), (1, elems)))
        whole = Tile("sbuf", dtype, affine(0), rows, affine(0), ((1, elems),))
        self.found.append(Record(DmaCopy(scratch, whole, self.trace.ring(True)), {"source": block.place}, at))
        block.load = Record(DmaCopy(whole, scratch, 0), {"target": block.place}, at)
        self.done.saved_bytes += block_bytes(self.trace, place) * rows
