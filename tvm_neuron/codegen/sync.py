"""synchronise: gives every instruction the waits that keep the program's meaning while its engines run side by side.

For each instruction as often as it runs, the last access of every other queue to what it touches says how many
instructions of that queue must be complete. Over the loops around it, these numbers become one wait for each queue:
exactly, where they are a linear function of the loops; otherwise in step with the other queue's own progress, which
is never later than the instruction's place in the program, so that no wait can lock up. What the first iterations wait
for may be a second one, so that it doesn't move the others. What follows from other waits is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Instruction, Wait, affine
from tvm_neuron.native import Tiles, find_waits
from tvm_neuron.program import Loop, Node, Program
from tvm_neuron.program.cells import Cells, Footprint, Place, footprints
from tvm_neuron.program.dynamic import Dynamic, affine_at, expand

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Needed:
    """What a static instruction needs of a queue in each of its iterations: so many instructions complete."""

    number: int  # of the instruction
    queue: str
    values: Ints
    matter: NDArray[np.bool_]  # whether no other wait implies it
    index: NDArray[np.int32]  # [iterations, loops around it]
    waits: list[Wait]

    @property
    def is_exact(self) -> bool:
        """Whether the waits hold until what matters is complete, and for nothing else."""
        found = np.max([np.minimum(affine_at(w.count, self.index), w.cap) for w in self.waits], axis=0)
        return bool(np.all(found[self.matter] <= self.values[self.matter]))


def synchronise(program: Program, device: Device) -> Program:
    """The program with waits on every instruction that needs them."""
    waits: dict[int, tuple[Wait, ...]] = {}
    for each in _found(program, device):
        waits[each.number] = (*waits.get(each.number, ()), *each.waits)
    attached, _ = _attach(program.body, waits, 0)
    return program.with_body(attached)


def waits_too_long(program: Program, device: Device) -> set[int]:
    """The instructions, counted in the order of the program, that wait for more than they need in some iteration."""
    return {each.number for each in _found(program, device) if not each.is_exact}


def _found(program: Program, device: Device) -> Iterator[_Needed]:
    dynamic = expand(program)
    tiles, cells = footprints(program, device, dynamic)
    found = find_waits(dynamic.number, dynamic.queue, dynamic.position, as_arrays(tiles, cells), len(QUEUES))
    needed, matters = found or waits_in_python(dynamic, tiles, cells)
    paces = _paces(program.body)
    for number, rows in enumerate(dynamic.rows()):
        counts, index = dynamic.counts[number], dynamic.index[rows]
        for queue in np.flatnonzero(matters[rows].any(axis=0)):
            values, matter = needed[rows, queue].astype(np.int64), matters[rows, queue]
            waits = _waits(QUEUES[queue], values, matter, index, counts, paces[number][:, queue])
            yield _Needed(number, QUEUES[queue], values, matter, index, waits)


class _Marks:
    """For every cell of one memory, the position (from 1) of the last read and write by each queue."""

    def __init__(self, cells: Cells) -> None:
        self.size = cells.groups * cells.count
        self.writes = np.zeros((len(QUEUES), self.size), np.int32)
        self.reads = np.zeros((len(QUEUES), self.size), np.int32)

    def last(self, tile: Footprint, at: int) -> NDArray[np.int32]:
        """The last conflicting position of each queue."""
        axes = tuple(range(1, 1 + len(tile.shape)))
        found = self._window(self.writes, tile, at).max(axis=axes)
        return np.maximum(found, self._window(self.reads, tile, at).max(axis=axes)) if tile.is_write else found

    def record(self, tile: Footprint, at: int, queue: int, position: int) -> None:
        """Takes down an access."""
        marks = self.writes if tile.is_write else self.reads
        self._window(marks, tile, at)[queue] = position

    def _window(self, marks: NDArray[np.int32], tile: Footprint, at: int) -> NDArray[np.int32]:
        strides = (self.size * 4, *(step * 4 for step in tile.strides))
        return np.ndarray((len(QUEUES), *tile.shape), np.int32, marks, at * 4, strides)


def as_arrays(tiles: Sequence[Sequence[Footprint]], cells: Mapping[Place, Cells]) -> Tiles:
    """The footprints for `find_waits`."""
    places = {place: at for at, place in enumerate(cells)}
    table, axes, starts = (list[int]() for _ in range(3))
    for tile in chain.from_iterable(tiles):
        table += (places[tile.place], tile.is_write, len(tile.shape), len(axes), len(starts))
        axes += chain.from_iterable(zip(tile.shape, tile.strides, strict=True))
        starts += tile.at
    first = np.cumsum([0, *map(len, tiles)], dtype=np.int64)
    sizes = np.array([each.groups * each.count for each in cells.values()], np.int64)
    return Tiles(first, np.array(table, np.int64), np.array(axes, np.int64), np.array(starts, np.int64), sizes)


def waits_in_python(
    dynamic: Dynamic, tiles: Sequence[Sequence[Footprint]], cells: Mapping[Place, Cells]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """What `find_waits` finds."""
    needed = _needed(dynamic, tiles, cells)
    return needed, _matters(needed, dynamic)


def _needed(
    dynamic: Dynamic, tiles: Sequence[Sequence[Footprint]], cells: Mapping[Place, Cells]
) -> NDArray[np.int32]:
    marks: dict[Place, _Marks] = {place: _Marks(size) for place, size in cells.items()}
    needed = np.zeros((len(dynamic), len(QUEUES)), np.int32)
    turn = [0] * len(dynamic.statics)
    order = zip(dynamic.number.tolist(), dynamic.queue.tolist(), dynamic.position.tolist(), strict=True)
    for row, (number, queue, position) in enumerate(order):
        places = [(tile, tile.at[turn[number]]) for tile in tiles[number]]
        for tile, at in places:
            np.maximum(needed[row], marks[tile.place].last(tile, at), out=needed[row])
        for tile, at in places:
            marks[tile.place].record(tile, at, queue, position + 1)
        turn[number] += 1
    return needed


def _matters(needed: NDArray[np.int32], dynamic: Dynamic) -> NDArray[np.bool_]:
    """Which of the counts are no consequence of the others: of what its own queue and those it waits for waited for."""
    matters = np.zeros(needed.shape, np.bool_)
    known: list[list[list[int]]] = [[] for _ in QUEUES]  # of each instruction of a queue: complete when it starts
    rows = zip(needed.tolist(), dynamic.queue.tolist(), dynamic.position.tolist(), strict=True)
    for row, (counts, queue, position) in enumerate(rows):
        mine = known[queue]
        clock = mine[-1].copy() if mine else [0] * len(QUEUES)
        clock[queue] = position
        more = [(other, count) for other, count in enumerate(counts) if count > clock[other]]
        theirs = [known[other][count - 1] for other, count in more]
        for other, count in more:
            matters[row, other] = all(count > clock_there[other] for clock_there in theirs)
            clock[other] = count
        for clock_there in theirs:
            clock = list(map(max, clock, clock_there))
        mine.append(clock)
    return matters


def _paces(body: tuple[Node, ...]) -> list[NDArray[np.int64]]:
    """For each static instruction [loops around it, queues]: instructions of each queue in one iteration."""
    found: list[list[NDArray[np.int64]]] = []

    def visit(nodes: tuple[Node, ...], around: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        total = np.zeros(len(QUEUES), np.int64)
        for node in nodes:
            if isinstance(node, Loop):
                each = np.zeros(len(QUEUES), np.int64)
                each += visit(node.body, [*around, each])
                total += each * node.count
            else:
                found.append(around)
                total[QUEUES.index(node.queue)] += 1
        return total

    visit(body, [])
    return [np.array(around, np.int64).reshape(-1, len(QUEUES)) for around in found]


def _waits(
    queue: str, values: Ints, matter: NDArray[np.bool_], index: NDArray[np.int32], counts: tuple[int, ...], pace: Ints
) -> list[Wait]:
    grid = values.reshape(counts)
    steps = [
        int(np.take(grid, 1, axis).flat[0] - grid.flat[0]) if count > 1 else 0 for axis, count in enumerate(counts)
    ]
    here = index[:, : len(counts)].astype(np.int64)
    first, most = int(values[0]), int(values.max())
    if np.array_equal(here @ np.array(steps, np.int64) + first if counts else values, values):
        return [Wait(queue, affine(first, enumerate(steps)), most)]
    before = values - here @ pace  # no more than there is before all iterations; below 0, it is there from the start
    first, least, most = (int(found) for found in (before[matter].max(), values[matter].min(), values[matter].max()))
    if least <= first:  # the first iterations often wait for the end of what came before, all for the same
        later, end = matter & (values > least), Wait(queue, affine(least, ()), least)
        if not later.any():
            return [end]
        if (rest := int(before[later].max())) < first:
            return [end, Wait(queue, affine(rest, enumerate(pace.tolist())), most)]
    return [Wait(queue, affine(first, enumerate(pace.tolist())), most)]


def _attach(body: tuple[Node, ...], waits: Mapping[int, tuple[Wait, ...]], number: int) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            inner, number = _attach(node.body, waits, number)
            nodes.append(Loop(node.count, inner))
        else:
            nodes.append(_with_waits(node, waits.get(number, ())))
            number += 1
    return tuple(nodes), number


def _with_waits(instruction: Instruction, waits: tuple[Wait, ...]) -> Instruction:
    return replace(instruction, waits=waits) if waits else instruction  # type: ignore[type-var]
