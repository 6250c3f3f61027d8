"""tiling: how axes are cut into tiles, partitions into runs, and access patterns brought to one common shape."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product

from tvm_neuron.allocation.storage import PARTITIONS, Span
from tvm_neuron.codegen.builder import Builder, Loops
from tvm_neuron.isa import DramTile, Tile
from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.schedule.expr import Axis

Segment = tuple[int, int, int]  # (start, size, count): `count` tiles of `size` from `start`
Region = dict[Axis, tuple[int, int]]  # [low, high) of each free axis


def segments(low: int, high: int, size: int) -> list[Segment]:
    """[low, high) in equal tiles of at most `size`, and a smaller one for the rest."""
    extent = high - low
    tiles = -(-extent // size)
    even = -(-extent // tiles)
    full, rest = divmod(extent, even)
    return [(low, even, full)] + ([(low + even * full, rest, 1)] if rest else [])


def tile_sizes(free: Sequence[Axis], region: Region, most: int) -> dict[Axis, int]:
    """How much of each free axis one tile covers: the innermost axes whole, as far as `most` elements go."""
    sizes: dict[Axis, int] = {}
    room = most
    for axis in reversed(free):
        low, high = region[axis]
        sizes[axis] = max(1, min(high - low, room))
        room = room // sizes[axis] if sizes[axis] == high - low else 1
    return sizes


def runs(extent: int, firsts: Sequence[int], most: int = PARTITIONS, any_start: bool = False) -> list[Segment]:
    """Channels [0, extent) in runs that every operand may address, its channel 0 lying on partition `firsts[i]`.

    A run stays within a chunk of 128 partitions and starts where its size may start; (start, size, count) repeats
    every 128 channels. With `any_start` (DMA) a run may start at any partition.
    """
    pieces: list[tuple[int, int]] = []
    at = 0
    while at < extent:
        size = min(most, extent - at)
        for first in firsts:
            start = (first + at) % PARTITIONS
            size = min(size, PARTITIONS - start)
            assert any_start or start % 32 == 0, f"{size} channels would start at partition {start}"
            while not any_start and start % partition_start_step(size):
                size = 64 if size > 64 else 32
        pieces.append((at, size))
        at += size
    return _repeated(pieces)


def _repeated(pieces: list[tuple[int, int]]) -> list[Segment]:
    found: list[Segment] = []
    for start, size in pieces:
        for i, (first, length, count) in enumerate(found):
            if length == size and start == first + count * PARTITIONS:
                found[i] = (first, length, count + 1)
                break
        else:
            found.append((start, size, 1))
    return found


def nests(
    builder: Builder, axes: Sequence[Axis], cuts: Sequence[Sequence[Segment]], strides: Sequence[int | None]
) -> Iterator[tuple[dict[Axis, Span], Loops]]:
    """Loops over every combination of segments, yielding the spans inside of them.

    `strides[i]` is how far axis i moves an iteration, None for the tile's own size.
    """
    for combination in product(*cuts):
        with ExitStack() as stack:
            spans: dict[Axis, Span] = {}
            loops: list[tuple[int, int]] = []
            for axis, (start, size, count), stride in zip(axes, combination, strides, strict=True):
                depth = stack.enter_context(builder.loop(count))
                spans[axis] = Span(start, size, depth, size if stride is None else stride, count)
                if depth is not None:
                    loops.append((depth, count))
            yield spans, tuple(loops)


class Squeeze:
    """Drops dimensions of one element and joins neighbours that all the given patterns step through evenly."""

    def __init__(self, patterns: Sequence[Tile | DramTile], leading: int = 0) -> None:
        """`leading` dimensions of each pattern (a DRAM tile's channel) stay as they are."""
        free = [p.dims[leading:] if isinstance(p, DramTile) else p.dims for p in patterns]
        columns = list(zip(*free, strict=True))
        self.groups: list[list[int]] = []
        for i, column in enumerate(columns):
            if column[0][1] == 1:
                continue
            if self.groups:
                inner = column
                outer = columns[self.groups[-1][-1]]
                if all(o[0] == n[0] * n[1] for o, n in zip(outer, inner, strict=True)):
                    self.groups[-1].append(i)
                    continue
            self.groups.append([i])

    def __call__(self, pattern: Tile) -> Tile:
        """The pattern in the common shape."""
        return replace(pattern, dims=self.dims(pattern.dims))

    def dims(self, dims: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """Free dimensions in the common shape."""
        joined = []
        for group in self.groups:
            count = 1
            for i in group:
                count *= dims[i][1]
            joined.append((dims[group[-1]][0], count))
        return tuple(joined) or ((1, 1),)


def contiguous(counts: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Dimensions of a tile without gaps."""
    dims: list[tuple[int, int]] = []
    step = 1
    for count in reversed(counts):
        dims.append((step, count))
        step *= count
    return tuple(reversed(dims))
