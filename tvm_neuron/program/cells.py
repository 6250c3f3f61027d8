"""Footprints: which cells of its memory each operand of a program touches.

A cell is a group of partitions by a number of bytes. Groups of 32 are exact for engines: their accesses start at a
multiple of 32, so two that touch one group both touch its first partition. A DMA may start anywhere and is taken to
touch the whole of its groups, and where it is skewed, in each partition what it touches in any. The bytes are the
largest number that divides every address, step and run of bytes in that memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.program.dynamic import Dynamic, affine_at
from tvm_neuron.program.program import Program

GROUP = 32  # partitions
Place = str | int
Marks = NDArray[np.int32]
_SIZE = np.dtype(np.int32).itemsize


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one memory: `groups` of partitions, `count` cells of `cell_bytes` in each."""

    groups: int
    count: int
    cell_bytes: int


@dataclass(frozen=True, slots=True)
class Footprint:
    """One operand: its cells as an array of `shape` with `strides` (in cells), starting at `at[turn]`."""

    place: Place
    is_write: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    at: Sequence[int]  # for each time the instruction runs


def window(marks: Marks, tile: Footprint, at: int) -> Marks:
    """Those of a memory's `marks`, one for each cell, that the operand touches when it starts at the cell `at`."""
    strides = tuple(step * _SIZE for step in tile.strides)
    return np.ndarray(tile.shape, np.int32, marks, at * _SIZE, strides)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """An operand before cells: runs of bytes, `dims` of (step, count) apart."""

    tile: Tile | DramTile
    place: Place
    is_write: bool
    unit: int  # bytes that the offset counts in
    run: int
    dims: tuple[tuple[int, int], ...]

    def divisors(self) -> tuple[int, ...]:
        """What the bytes of a cell must divide."""
        offset = self.tile.offset
        numbers = (offset.base, offset.phase, offset.wrap, *(step for _, step in offset.terms))
        return (self.run, *(step for step, _ in self.dims), *(number * self.unit for number in numbers))


def footprints(program: Program, device: Device, dynamic: Dynamic) -> tuple[list[list[Footprint]], dict[Place, Cells]]:
    """The footprints of each static instruction, reads first, and the cells of each memory that is ever written.

    Raises:
        ProgramError: one reaches out of its memory.
    """
    patterns = [[_pattern(tile, kind.role != "reads") for _, kind, tile in s.tiles()] for s in dynamic.statics]
    written = {pattern.place for group in patterns for pattern in group if pattern.is_write}
    cell_bytes: dict[Place, int] = dict.fromkeys(written, 0)
    for pattern in (pattern for group in patterns for pattern in group if pattern.place in written):
        cell_bytes[pattern.place] = gcd(cell_bytes[pattern.place], *pattern.divisors())
    cells = {place: _cells(place, size, program, device) for place, size in cell_bytes.items()}
    found: list[list[Footprint]] = []
    for group, rows in zip(patterns, dynamic.rows(), strict=True):
        ordered = sorted((p for p in group if p.place in written), key=lambda pattern: pattern.is_write)
        found.append([_footprint(pattern, cells[pattern.place], dynamic.index[rows]) for pattern in ordered])
    return found, cells


def _pattern(tile: Tile | DramTile, is_write: bool) -> _Pattern:
    size = size_bytes(tile.dtype)
    run, dims = size, list[tuple[int, int]]()
    for step, count in reversed(tile.dims):
        if count == 1 or step == 0:
            continue
        if step * size == run and not dims:
            run *= count
        else:
            dims.append((step * size, count))
    if isinstance(tile, Tile) and tile.skew:
        dims.append((tile.skew, tile.partitions))
    if isinstance(tile, Tile):
        return _Pattern(tile, tile.space, is_write, 1, run, tuple(reversed(dims)))
    return _Pattern(tile, tile.tensor, is_write, size, run, tuple(reversed(dims)))


def _cells(place: Place, size: int, program: Program, device: Device) -> Cells:
    if isinstance(place, int):
        return Cells(1, -(-program.tensors[place].size_bytes // size), size)
    total = device.sbuf_bytes_per_partition if place == "sbuf" else device.psum_bytes_per_partition
    return Cells(-(-device.partitions // GROUP), -(-total // size), size)


def _footprint(pattern: _Pattern, cells: Cells, index: np.ndarray) -> Footprint:
    tile, size = pattern.tile, cells.cell_bytes
    partition, groups = Affine(), 1
    if isinstance(tile, Tile):
        partition = _in_groups(tile.partition)
        groups = -(-(tile.partition.base % GROUP + tile.partitions) // GROUP)
    shape = (groups, *(count for _, count in pattern.dims), pattern.run // size)
    strides = (cells.count, *(step // size for step, _ in pattern.dims), 1)
    # What one access reaches behind its first cell. Native code writes marks for cells, and trusts that they are there.
    reach = groups - 1, sum(step * (count - 1) for step, count in zip(strides[1:], shape[1:], strict=True))
    if tile.offset.terms or partition.terms:
        start, group = affine_at(tile.offset, index) * pattern.unit // size, affine_at(partition, index)
        at = (start + group * cells.count).tolist()
        bounds = [(int(first.min(initial=0)), int(first.max(initial=0))) for first in (group, start)]
    else:  # as most are, for which arrays would take longer than all else
        fixed = partition.at(()), tile.offset.at(()) * pattern.unit // size
        at = [fixed[1] + fixed[0] * cells.count] * len(index)
        bounds = [(first, first) for first in fixed]
    for (low, high), further, end in zip(bounds, reach, (cells.groups, cells.count), strict=True):
        if low < 0 or high + further >= end:
            raise ProgramError(f"{tile} reaches out of its memory: no instruction may")
    return Footprint(pattern.place, pattern.is_write, shape, strides, at)


def _in_groups(partition: Affine) -> Affine:
    terms = tuple((depth, step // GROUP) for depth, step in partition.terms)
    return Affine(partition.base // GROUP, terms, partition.phase // GROUP, partition.wrap // GROUP)
