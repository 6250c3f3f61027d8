"""tiling: how axes are cut into tiles, and partitions into runs."""

from collections.abc import Sequence

from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.schedule.expr import Axis

PARTITIONS = 128  # of a chunk; a tensor with more channels continues behind it
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


def contiguous(counts: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Dimensions of a tile without gaps."""
    dims: list[tuple[int, int]] = []
    step = 1
    for count in reversed(counts):
        dims.append((step, count))
        step *= count
    return tuple(reversed(dims))
