"""find_lives: what lies where in SBUF, in PSUM and in tensors in DRAM, and from when to when."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.hw import Device
from tvm_neuron.isa import DramTile, Instruction, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.operand import ScalarKind, TileKind, is_first
from tvm_neuron.program import Program
from tvm_neuron.program.cells import GROUP, Cells, Footprint, Marks, Place, footprints, window
from tvm_neuron.program.dynamic import Dynamic, affine_at, expand

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Life:
    """What one instruction wrote, from its start until the last one that reads it is through.

    Sums in place go on with the life that they add to. `low` to `high` are bytes of each partition, or of a tensor in
    DRAM; `taken_bytes` are those that were written; of SBUF and PSUM in whole groups of 32 partitions.
    """

    place: Place  # "sbuf", "psum", or the number of a tensor in DRAM
    writer: Instruction
    row: int  # of the dynamic instruction that wrote it; -1: one of the prologue, so that it is there all the time
    low: int
    high: int
    partition: int
    partitions: int
    taken_bytes: int
    start_ps: int
    end_ps: int
    use: int = -1  # row of the first instruction that reads it; -1: none does

    @property
    def groups(self) -> range:
        """The groups of 32 partitions in which it lies; DRAM is one."""
        return range(self.partition // GROUP, max(self.partition + self.partitions - 1, 0) // GROUP + 1)

    @property
    def loaded(self) -> int:
        """The tensor in DRAM that a transfer brought it from; -1: something on the core made it."""
        sources = (tile for _, kind, tile in self.writer.tiles() if kind.role == "reads")
        return next((tile.tensor for tile in sources if isinstance(tile, DramTile)), -1)


    @property
    def is_copy(self) -> bool:
        """Whether a transfer brought it, and nothing on the core chose from where."""
        sources = [tile for _, kind, tile in self.writer.tiles() if kind.role == "reads"]
        return bool(sources) and all(isinstance(tile, DramTile) for tile in sources)


class Change(NamedTuple):
    """Of the bytes in use in a group of 32 partitions, by a life."""

    ps: int
    bytes: int
    group: int
    life: Life


@dataclass(frozen=True)
class Lives:
    """`edges` has what was read, by (origin of who computed, origin of who read it), also by way of DRAM.

    `loads` are (input, origin of who read what a transfer brought of it). A transfer whose own operator does not read
    what it brings is what that operator computes, like a Concat.
    """

    lives: list[Life]
    edges: dict[tuple[int, int], list[Life]]
    loads: set[tuple[int, int]]
    changes: list[Change]

    def taken(self, place: Place, group: int | None = None) -> tuple[Ints, Ints]:
        """(ps, bytes in use from then on), in order of time, in all groups or one; each byte counts once."""
        mine = (one for one in self.changes if one.life.place == place and group in (None, one.group))
        return summed((one.ps, one.bytes) for one in mine)


def summed(changes: Iterable[tuple[int, int]]) -> tuple[Ints, Ints]:
    """(times, sums of all changes until then)."""
    found = np.array(sorted(changes), np.int64).reshape(-1, 2)
    times, first = np.unique(found[:, 0], return_index=True)
    return times, np.cumsum(np.add.reduceat(found[:, 1], first)) if len(found) else times


def find_lives(program: Program, loading: Program, device: Device, dynamic: Dynamic, start: Ints, end: Ints) -> Lives:
    """Those of a run whose instructions take from `start` to `end`; what `loading` brought stays for all of it."""
    kept = expand(loading)
    total = int(end.max(initial=0))
    resident = _Tracer(loading, device, kept)
    resident.run(np.zeros(len(kept), np.int64), np.full(len(kept), total))
    for life in resident.lives:
        life.row, life.use = -1, -1
    traced = _Tracer(program, device, dynamic)
    traced.run(start, end)
    loads = traced.loads()
    edges = {ends: [traced.lives[number] for number in sorted(read)] for ends, read in traced.edges.items()}
    return Lives(resident.lives + traced.lives, edges, loads, [*resident.changes(), *traced.changes()])


class _Tracer:
    """Runs all accesses in the order of the program and knows of every cell of memory whose it is."""

    def __init__(self, program: Program, device: Device, dynamic: Dynamic) -> None:
        self.dynamic, self.tensors = dynamic, program.tensors
        self.touched, self.cells = footprints(program, device, dynamic)
        self.owner: dict[Place, Marks] = {
            place: np.full(cells.groups * cells.count, -1, np.int32) for place, cells in self.cells.items()
        }
        rows = dynamic.rows()
        self.boxes = [
            [_Boxes(one, kind, tile, dynamic.index[mine]) for _, kind, tile in one.tiles() if kind.role != "reads"]
            for one, mine in zip(dynamic.statics, rows, strict=True)
        ]
        self.lives: list[Life] = []
        self.stolen: list[tuple[int, int, int, int]] = []  # (life, group, ps, bytes): what another one wrote over
        self.edges: dict[tuple[int, int], set[int]] = {}
        self.loaded: dict[int, set[int]] = {}  # who reads lives that inputs were brought as

    def run(self, start: Ints, end: Ints) -> None:
        """Finds all lives."""
        turns = [0] * len(self.dynamic.statics)
        rows = zip(self.dynamic.number.tolist(), start.tolist(), end.tolist(), strict=True)
        for row, (number, begin, done) in enumerate(rows):
            turn = turns[number]
            turns[number] += 1
            one, touched = self.dynamic.statics[number], self.touched[number]
            written = self.boxes[number]
            for tile in touched[: -len(written)]:
                self._read(tile, turn, row, one.origin, done)
            for tile, box in zip(touched[-len(written) :], written, strict=True):
                if box.adds[turn]:
                    self._read(tile, turn, row, one.origin, done)
                else:
                    self._write(tile, box, one, turn, row, begin, done)

    def _read(self, tile: Footprint, turn: int, row: int, origin: int, done: int) -> None:
        for number in _owners(window(self.owner[tile.place], tile, tile.at[turn])):
            life = self.lives[number]
            life.end_ps = max(life.end_ps, done)
            if life.use < 0 and not tile.is_write:
                life.use = row
            kind = self.tensors[life.loaded].kind if life.is_copy else ""
            if kind == "input":
                self.loaded.setdefault(number, set()).add(origin)
            elif kind != "weight":
                self.edges.setdefault((life.writer.origin, origin), set()).add(number)

    def loads(self) -> set[tuple[int, int]]:
        """Those of `Lives`; other reads of inputs become edges."""
        found = set()
        for number, origins in self.loaded.items():
            life = self.lives[number]
            for origin in origins:
                if life.writer.origin in origins:
                    found.add((life.loaded, origin))
                else:
                    self.edges.setdefault((life.writer.origin, origin), set()).add(number)
        return found

    def _write(
        self, tile: Footprint, box: "_Boxes", writer: Instruction, turn: int, row: int, begin: int, done: int
    ) -> None:
        marks = window(self.owner[tile.place], tile, tile.at[turn])
        size = _cell_bytes(tile.place, self.cells[tile.place])
        first = tile.at[turn] // self.cells[tile.place].count
        for victim in _owners(marks):
            for group, part in enumerate(marks, first):
                self.stolen.append((victim, group, begin, int(np.count_nonzero(part == victim)) * size))
        marks[...] = len(self.lives)
        low, partition = box.low[turn], box.partition[turn]
        taken = prod(tile.shape) * size
        self.lives.append(
            Life(tile.place, writer, row, low, low + box.extent, partition, box.partitions, taken, begin, done)
        )

    def changes(self) -> Iterator[Change]:
        """All changes of what is in use, unordered."""
        left = [dict.fromkeys(life.groups, life.taken_bytes // len(life.groups)) for life in self.lives]
        for life, groups in zip(self.lives, left, strict=True):
            for group, size in groups.items():
                yield Change(life.start_ps, size, group, life)
        for number, group, at, size in self.stolen:
            if size and at < self.lives[number].end_ps:
                left[number][group] -= size
                yield Change(at, -size, group, self.lives[number])
        for life, groups in zip(self.lives, left, strict=True):
            for group, size in groups.items():
                yield Change(life.end_ps, -size, group, life)


class _Boxes:
    """Where one operand is written at each turn of its instruction, and whether that adds to what is there."""

    def __init__(
        self, instruction: Instruction, kind: TileKind | ScalarKind, tile: Tile | DramTile, index: NDArray[np.int32]
    ) -> None:
        unless = kind.unless if isinstance(kind, TileKind) else ""
        first = getattr(instruction, unless) if unless else ()
        self.adds = [not is_first(first, tuple(turn)) for turn in index.tolist()]
        offset = affine_at(tile.offset, index)
        if isinstance(tile, DramTile):
            size = size_bytes(tile.dtype)
            offset, self.partitions, partition = offset * size, 0, np.zeros(len(index), np.int64)
            self.extent = (sum(step * (count - 1) for step, count in tile.dims) + 1) * size
        else:
            self.extent, self.partitions = tile.extent_bytes, tile.partitions
            partition = affine_at(tile.partition, index)
        self.low: list[int] = offset.tolist()
        self.partition: list[int] = partition.tolist()


def _owners(marks: Marks) -> list[int]:
    """The lives that cells belong to, each once."""
    low, high = int(marks.min()), int(marks.max())
    found: list[int] = [low] if low == high else np.unique(marks).tolist()
    return found[1:] if found[0] < 0 else found


def _cell_bytes(place: Place, cells: Cells) -> int:
    return cells.cell_bytes * (GROUP if isinstance(place, str) else 1)
