"""Storage: where a tensor lies, and the access patterns of its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tvm_neuron.isa import DramTile, Tile, affine
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tiling import PARTITIONS


@dataclass(frozen=True)
class Span:
    """The part of an axis that one instruction covers: [start, start + size), moved by `stride` each loop iteration.

    `depth` is the nesting depth of that loop and `count` its iterations; None and 1 where there is none. `inner` is the
    (depth, stride) of a further loop inside of a tile.
    """

    start: int
    size: int
    depth: int | None = None
    stride: int = 0
    count: int = 1
    inner: tuple[int, int] | None = None

    def terms(self, step: int) -> list[tuple[int, int]]:
        """(depth, movement of the address) for an address that moves `step` with the axis."""
        loops = [] if self.depth is None else [(self.depth, self.stride)]
        loops += [] if self.inner is None else [self.inner]
        return [(depth, step * stride) for depth, stride in loops]


Spans = Mapping[Axis, Span]


@dataclass(frozen=True)
class OnChip:
    """A tensor, or a box of one, in SBUF or PSUM: dimension `partition_dim` in chunks of 128, the others within each.

    `origin` is the first element of each dimension that is here, `strides` are in elements, 0 for the partition one.
    """

    dtype: str
    partition_dim: int
    offset: int  # bytes within each partition
    origin: tuple[int, ...]
    strides: tuple[int, ...]
    chunk_elems: int
    space: str = "sbuf"
    joins_chunks: bool = True  # whether one access covers several of them: no PSUM bank ends in between

    def tile(self, maps: Sequence[Linear], channel: Axis, free: Sequence[Axis], spans: Spans) -> Tile:
        """The elements `maps` over the spans: [channels, *free].

        Axes that step partitions stay on one, see `turns`, but for those that step whole chunks.
        """
        run, part = spans[channel], maps[self.partition_dim]
        steps = {axis: step for axis, step in part.terms.items() if axis in spans}
        stepping = [axis for axis, step in steps.items() if axis is not channel and step % PARTITIONS]
        assert all(spans[axis].size == 1 for axis in stepping), "no pattern has partitions apart from one another"
        start = part.const + sum(step * spans[axis].start for axis, step in steps.items())
        start -= self.origin[self.partition_dim]
        has_channel = channel in part.terms
        assert not (has_channel and _step(maps, self.strides, channel)), "a diagonal over partitions has no pattern"
        elems = start // PARTITIONS * self.chunk_elems
        terms = [term for axis, step in steps.items() for term in spans[axis].terms(step * self.chunk_elems)]
        terms = [(depth, movement // PARTITIONS) for depth, movement in terms]
        moved, more = _free_offset(maps, self.strides, self.origin, self.partition_dim, channel, spans)
        item = size_bytes(self.dtype)
        return Tile(
            self.space,
            self.dtype,
            affine(start % PARTITIONS),
            run.size if has_channel else 1,
            affine((elems + moved) * item + self.offset, _sum_terms(terms + more, item)),
            tuple((self._free_step(maps, axis), spans[axis].size) for axis in free),
        )

    def _free_step(self, maps: Sequence[Linear], axis: Axis) -> int:
        chunks, rest = divmod(maps[self.partition_dim].terms.get(axis, 0), PARTITIONS)
        return _step(maps, self.strides, axis) + (0 if rest else chunks * self.chunk_elems)


@dataclass(frozen=True)
class InDram:
    """A tensor in device memory with any strides (in elements)."""

    index: int  # in the program's tensor table
    dtype: str
    strides: tuple[int, ...]

    def tile(self, maps: Sequence[Linear], channel: Axis, free: Sequence[Axis], spans: Spans) -> DramTile:
        """The elements `maps` over the spans: [channels, *free]."""
        offset = sum(m.const * s for m, s in zip(maps, self.strides, strict=True))
        terms: list[tuple[int, int]] = []
        for axis, span in spans.items():
            step = _step(maps, self.strides, axis)
            offset += span.start * step
            terms += span.terms(step)
        dims = [(_step(maps, self.strides, axis), spans[axis].size) for axis in (channel, *free)]
        return DramTile(self.index, self.dtype, affine(offset, _sum_terms(terms, 1)), tuple(dims))

    def by_rows(self, maps: Sequence[Linear], axes: Sequence[Axis]) -> list[Axis]:
        """The axes as they follow each other in memory, those first that are repeated there."""
        return by_rows(axes, {axis: _step(maps, self.strides, axis) for axis in axes})


Storage = OnChip | InDram


def by_rows(axes: Sequence[Axis], steps: Mapping[Axis, int]) -> list[Axis]:
    """The axes by how far each steps in memory, the innermost last, those first that step nowhere."""
    return sorted(axes, key=lambda axis: -(steps[axis] or inf))


def _step(maps: Sequence[Linear], strides: Sequence[int], axis: Axis) -> int:
    return sum(m.terms.get(axis, 0) * stride for m, stride in zip(maps, strides, strict=True))


def _free_offset(
    maps: Sequence[Linear],
    strides: Sequence[int],
    origin: Sequence[int],
    partition_dim: int,
    channel: Axis,
    spans: Spans,
) -> tuple[int, list[tuple[int, int]]]:
    offset = sum(
        (m.const - o) * s for d, (m, o, s) in enumerate(zip(maps, origin, strides, strict=True)) if d != partition_dim
    )
    terms: list[tuple[int, int]] = []
    for axis, span in spans.items():
        if axis is not channel:
            step = _step(maps, strides, axis)
            offset += span.start * step
            terms += span.terms(step)
    return offset, terms


def _sum_terms(terms: Sequence[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    total: dict[int, int] = {}
    for depth, step in terms:
        total[depth] = total.get(depth, 0) + step * by
    return list(total.items())
