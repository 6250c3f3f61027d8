"""Access: an operand's tile as addresses in the model's memory, loops included."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tvm_neuron.isa import Affine, DramTile, Tile
from tvm_neuron.isa.dtypes import DTYPES, size_bytes


@dataclass(frozen=True, slots=True)
class Access:
    """`shape` elements at `strides` bytes, starting at an address that loops move.

    Linear movement is in `steps`, so that a loop can become an array axis; movement around a ring is in `rings`.
    """

    place: str | int  # "sbuf", "psum" or the index of a DRAM tensor
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    base: int
    steps: tuple[tuple[int, int], ...]  # (depth, bytes)
    rings: tuple[tuple[Affine, int], ...]  # (address, bytes of its unit)

    def address(self, indices: Sequence[int]) -> int:
        """First byte in iteration `indices`."""
        at = self.base
        for depth, step in self.steps:
            at += step * indices[depth]
        for ring, unit in self.rings:
            at += ring.at(indices) * unit
        return at

    def step(self, depth: int) -> int:
        """Bytes that one iteration of the loop at `depth` moves it, 0 if none."""
        return next((step for d, step in self.steps if d == depth), 0)

    def is_ring(self, depth: int) -> bool:
        """Whether the loop at `depth` moves it around a ring."""
        return any(ring.step(depth) for ring, _ in self.rings)

    def moves(self, depth: int) -> bool:
        """Whether the loop at `depth` moves it at all."""
        return self.step(depth) != 0 or self.is_ring(depth)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    def is_injective(self, counts: dict[int, int]) -> bool:
        """Whether no two iterations of the loops (depth -> count), nor two elements, share a byte.

        Sufficient, not necessary: sorted by step, each axis must step over everything that is inside it.
        """
        if any(count > 1 and self.is_ring(depth) for depth, count in counts.items()):
            return False
        axes = [(abs(self.step(depth)), count) for depth, count in counts.items()]
        axes += list(zip(self.strides, self.shape, strict=True))
        inside = self.dtype.itemsize
        for step, count in sorted(axis for axis in axes if axis[1] > 1):
            if step < inside:
                return False
            inside += step * (count - 1)
        return True


def make_access(tile: Tile | DramTile, counts: Sequence[int], pitch_bytes: int) -> Access:
    """The tile's Access in memory whose partitions are `pitch_bytes` apart, inside loops that run `counts` times."""
    size = size_bytes(tile.dtype)
    strides = tuple(step * size for step, _ in tile.dims)
    place: str | int
    if isinstance(tile, DramTile):
        moving, place = [(tile.offset, size)], tile.tensor
    else:
        moving, place = [(tile.partition, pitch_bytes), (tile.offset, 1)], tile.space
        strides = (pitch_bytes + tile.skew, *strides)
    base, steps, rings = 0, dict[int, int](), []
    for affine, unit in moving:
        if affine.wraps(counts):
            rings.append((affine, unit))
            continue
        base += (affine.base + affine.phase) * unit
        for depth, step in affine.terms:
            steps[depth] = steps.get(depth, 0) + step * unit
    found = tuple((depth, step) for depth, step in sorted(steps.items()) if step)
    return Access(place, DTYPES[tile.dtype], tile.shape, strides, base, found, tuple(rings))
