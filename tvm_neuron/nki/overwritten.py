"""check_overwritten: where a kernel gives addresses itself, no tile is read after another was written on its bytes.

Waits keep the order of the calls whatever the addresses are, so two tiles at one address race no engine, but the second
destroys what the first holds. That is meant where the first is done with; where it is still read, nobody means it.
Accesses are followed as boxes of partitions and bytes around what they touch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_neuron.isa import Instruction, Tile
from tvm_neuron.isa.operand import ScalarKind, TileKind
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace

Box = tuple[int, int, int, int]  # partitions and bytes, each from and to


@dataclass
class _Held:
    """A logical tile: all that it covers, and what of it others have written on since, with which tile and where."""

    memory: str
    whole: Box
    lost: list[tuple[Box, Place, str]] = field(default_factory=list)
    neighbours: list[Place] = field(default_factory=list)


def check_overwritten(trace: Trace, records: Sequence[Record], located: Sequence[Instruction]) -> None:
    """`located` are the instructions of `records` at their addresses.

    Raises:
        KernelError: a tile is read that another one, at the same address, was written on.
    """
    if not any(tensor.addresses for tensor in trace.tensors):
        return
    held: dict[Place, _Held] = {}
    for record, instruction in zip(records, located, strict=True):
        tiles = [
            (_role(instruction, kind), record.places[name], tile)
            for name, kind, tile in instruction.tiles()
            if isinstance(tile, Tile)
        ]
        for _, place, tile in tiles:
            _widen(held, place, tile)
        for role, place, tile in tiles:
            if role != "writes":
                _check_read(trace, held[place], place, _box(tile), record.at)
        for role, place, tile in tiles:
            if role != "reads":
                _write(held, place, _box(tile), record.at)


def _role(instruction: Instruction, kind: TileKind | ScalarKind) -> str:
    """A kernel has no loops left, so that a product is the first of its sum or not."""
    is_first = isinstance(kind, TileKind) and kind.unless and getattr(instruction, kind.unless) is not None
    return "writes" if is_first else kind.role


def _box(tile: Tile) -> Box:
    first, byte = tile.partition.base, tile.offset.base
    return first, first + tile.partitions, byte, byte + tile.extent_bytes


def _widen(held: dict[Place, _Held], place: Place, tile: Tile) -> None:
    """What is known of a tile's place grows with each access, and so does who lies on it."""
    box = _box(tile)
    known = held.get(place)
    if known is not None and _around(known.whole, box) == known.whole:
        return
    whole = box if known is None else _around(known.whole, box)
    mine = held.setdefault(place, _Held(tile.space, whole))
    mine.whole = whole
    for other, its in held.items():
        if other != place and its.memory == mine.memory and _meet(its.whole, whole) and other not in mine.neighbours:
            mine.neighbours.append(other)
            its.neighbours.append(place)


def _check_read(trace: Trace, mine: _Held, place: Place, box: Box, at: str) -> None:
    for lost, by, written in mine.lost:
        if _meet(lost, box):
            made, other = trace.tensors[place[0]].made, trace.tensors[by[0]].made
            first, last, low, high = lost
            raise wrong(
                f"the tile made at {made} is read after the one made at {other}, whose address shares bytes {low} to "
                f"{high} of partitions {first} to {last} with it, was written at {written}: give them addresses apart, "
                "or read the first before the second is written",
                at,
            )


def _write(held: dict[Place, _Held], place: Place, box: Box, at: str) -> None:
    mine = held[place]
    mine.lost = [(rest, by, written) for lost, by, written in mine.lost for rest in _without(lost, box)]
    for other in mine.neighbours:
        if _meet(held[other].whole, box):
            held[other].lost.append((_common(held[other].whole, box), place, at))


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _common(one: Box, other: Box) -> Box:
    return max(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), min(one[3], other[3])


def _without(one: Box, other: Box) -> list[Box]:
    """What is left of a box outside of another, in up to four."""
    if not _meet(one, other):
        return [one]
    first, last, low, high = one
    top, bottom, left, right = _common(one, other)
    around = ((first, top, low, high), (bottom, last, low, high), (top, bottom, low, left), (top, bottom, right, high))
    return [box for box in around if box[0] < box[1] and box[2] < box[3]]


def _around(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), max(one[3], other[3])
