"""Region: what a tile can touch in all iterations of a nest, as a box; enough to prove that two tiles never meet."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_neuron.isa import Affine, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes


@dataclass(frozen=True, slots=True)
class Range:
    """`length` units from an Affine: `low` to `high` while the inner loops run and the outer ones stand still."""

    affine: Affine
    low: int
    high: int
    outer: tuple[tuple[int, int], ...]
    outer_low: int
    outer_high: int

    def meets(self, other: "Range") -> bool:
        """Whether the two can share a unit in one iteration of the outer loops."""
        if self.outer == other.outer:
            return self.low < other.high and other.low < self.high
        return self.low + self.outer_low < other.high + other.outer_high and (
            other.low + other.outer_low < self.high + self.outer_high
        )


@dataclass(frozen=True, slots=True)
class Region:
    """Box in one memory."""

    place: str | int
    partitions: Range
    bytes: Range

    def meets(self, other: "Region") -> bool:
        """Whether a byte can be in both."""
        return self.place == other.place and self.partitions.meets(other.partitions) and self.bytes.meets(other.bytes)


def make_region(tile: Tile | DramTile, counts: Sequence[int], depth: int) -> Region:
    """The Region of `tile` in a nest whose outermost loop is at `depth`; `counts` are those of all loops around it."""
    size = size_bytes(tile.dtype)
    if isinstance(tile, Tile):
        partitions = _range(tile.partition, tile.partitions, 1, counts, depth)
        return Region(tile.space, partitions, _range(tile.offset, tile.extent_bytes, 1, counts, depth))
    extent = (sum(step * (count - 1) for step, count in tile.dims) + 1) * size
    return Region(tile.tensor, _range(Affine(), 1, 1, counts, depth), _range(tile.offset, extent, size, counts, depth))


def _range(affine: Affine, length: int, unit: int, counts: Sequence[int], depth: int) -> Range:
    if affine.wraps(counts):
        low, high = affine.span(counts)
        return Range(affine, low * unit, high * unit + length, (), 0, 0)
    inner = Affine(affine.base, tuple(term for term in affine.terms if term[0] >= depth), affine.phase)
    outer = Affine(0, tuple(term for term in affine.terms if term[0] < depth))
    low, high = inner.span(counts)
    outer_low, outer_high = outer.span(counts)
    scaled = tuple((d, step * unit) for d, step in outer.terms)
    return Range(affine, low * unit, high * unit + length, scaled, outer_low * unit, outer_high * unit)


def never_meet_at_once(left: Tile | DramTile, right: Tile | DramTile, counts: Sequence[int]) -> bool:
    """Whether two tiles that loops move alike are apart in every single iteration.

    They may well meet over several: scratch memory used in turns.
    """
    if not isinstance(left, Tile) or not isinstance(right, Tile) or left.space != right.space:
        return False
    one, two = left.offset, right.offset
    if one.terms == two.terms and one.wrap == two.wrap and (not one.wrap or one.base == two.base):
        gap = two.base + two.phase - one.base - one.phase
        if one.wrap:
            gap %= one.wrap
            apart = gap >= left.extent_bytes and one.wrap - gap >= right.extent_bytes
        else:
            apart = gap >= left.extent_bytes or -gap >= right.extent_bytes
        if apart:
            return True
    partitions = [_range(tile.partition, tile.partitions, 1, counts, 0) for tile in (left, right)]
    return not partitions[0].meets(partitions[1])
