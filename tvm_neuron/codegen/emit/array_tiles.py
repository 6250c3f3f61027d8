"""array_tiles: the tiles of a kernel whose operands both lie in SBUF, each a PSUM bank that the PE array fills."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm_neuron.allocation.regions import grains
from tvm_neuron.allocation.storage import Span
from tvm_neuron.codegen.emit.builder import Loops
from tvm_neuron.codegen.emit.emitter import Emitter, partition_firsts
from tvm_neuron.codegen.emit.nests import nests
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.tile_end import TileEnd
from tvm_neuron.isa import Affine, Tile, affine
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import ROOT, Kernel
from tvm_neuron.schedule.partitions import turns
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, contiguous, runs, segments

BYTES = 4  # of an element in PSUM


@dataclass
class ArrayTiles:
    """Cuts a kernel's axes: `sizes` says how much of a free axis one instruction covers, 1 for all others.

    Of those others one may be grouped: several of its values share a bank, so that one instruction brings them out.
    """

    emitter: Emitter
    kernel: Kernel
    sizes: dict[Axis, int]
    rows: dict[Axis, list[Segment]]  # axes that lie on the partitions of a source: their runs
    chunk: Axis | None = None  # over chunks of channels that may share a bank

    def __post_init__(self) -> None:
        plan, kernel = self.emitter.plan, self.kernel
        self.periods = grains(kernel, plan.partition_of)
        fixed = {*self.sizes, *self.rows, *kernel.out_maps[plan.partition_of[kernel.out]].terms} - {self.chunk}
        elems = prod(self.sizes.values()) * prod(max(size for _, size, _ in found) for found in self.rows.values())
        # a power of two, so that a group's loop and the ring of banks never seem to leave PSUM together
        self.group_step = 1 << (elems - 1).bit_length()
        room = self.emitter.device.moving_max_elems // self.group_step
        self.group: Axis | None = None
        self.group_size = 1
        for axis in kernel.free:
            every = self.periods.get(axis, 1)
            size = axis.extent if axis.extent <= room else room // every * every
            if axis not in fixed and size > 1 and size >= self.group_size:
                self.group, self.group_size = axis, size

    def emit(self, region: Region) -> Iterator[tuple[dict[Axis, Span], Tile]]:
        """The spans of each instruction and the part of PSUM that it fills; what follows a whole bank is emitted."""
        kernel, builder = self.kernel, self.emitter.builder
        channels = runs(
            self.emitter.channels(kernel),
            partition_firsts(kernel, self.emitter.plan.partition_of, self.emitter.plan.in_dram),
            self.emitter.device.pe_columns,
        )
        for channel in channels:
            cuts: list[Sequence[Segment]] = [[channel]]
            strides: list[int | None] = [PARTITIONS]
            for axis in kernel.free:
                found, stride = self._cuts(axis, *region[axis])
                cuts.append(found)
                strides.append(stride)
            for spans, loops in nests(builder, (kernel.channel, *kernel.free), cuts, strides):
                yield from self._bank(spans, loops)

    def _cuts(self, axis: Axis, low: int, high: int) -> tuple[Sequence[Segment], int | None]:
        if axis in self.rows:
            return self.rows[axis], PARTITIONS
        if axis in self.sizes:
            return segments(low, high, self.sizes[axis]), None
        if axis is self.group:
            full, rest = divmod(high - low, self.group_size)
            last = [(high - rest, rest, 1)] if rest else []
            return [(low, self.group_size, full), *last] if full else last, None
        every = self.periods.get(axis, 1)
        return turns(low, high, PARTITIONS // every), every

    def _bank(self, spans: dict[Axis, Span], loops: Loops) -> Iterator[tuple[dict[Axis, Span], Tile]]:
        kernel, builder = self.kernel, self.emitter.builder
        end = TileEnd(self.emitter, kernel, spans)
        dims = self._dims([spans[axis].size for axis in kernel.free])
        rows = spans[kernel.channel].size
        shape_of = Squeeze([*end.patterns, Tile("psum", "float32", Affine(), rows, Affine(), dims)])
        stays = kernel.out in self.emitter.in_psum and kernel.expr is ROOT
        bank = end.out if stays else replace(builder.psum_tile(rows, shape_of.dims(dims), loops), dims=dims)
        if self.group is None:
            yield spans, bank
        else:
            yield from self._members(self.group, spans, bank)
        if not stays:
            end.finish(shape_of, shape_of(bank), loops)

    def _dims(self, counts: list[int]) -> Dims:
        """How a bank is filled: without gaps, but for the values of the grouped axis."""
        if self.group is None:
            return contiguous(counts)
        at = self.kernel.free.index(self.group)
        inside = contiguous([1 if d == at else count for d, count in enumerate(counts)])
        return tuple((self.group_step, counts[at]) if d == at else dim for d, dim in enumerate(inside))

    def _members(
        self, group: Axis, spans: dict[Axis, Span], bank: Tile
    ) -> Iterator[tuple[dict[Axis, Span], Tile]]:
        """One value of the grouped axis after the other, those on the same partitions in a loop."""
        at = self.kernel.free.index(group)
        step, span = bank.dims[at][0] * BYTES, spans[group]
        every = self.periods.get(group, 1)
        for turn, _, count in turns(0, span.size, PARTITIONS // every):
            with self.emitter.builder.loop(count) as depth:
                inner = None if depth is None else (depth, every)
                one = replace(span, start=span.start + turn, size=1, inner=inner)
                moved = [] if depth is None else [(depth, every * step)]
                place = bank.offset
                offset = affine(place.base + turn * step, [*place.terms, *moved], place.phase, place.wrap)
                dims = tuple((s, 1 if d == at else count) for d, (s, count) in enumerate(bank.dims))
                yield {**spans, group: one}, replace(bank, offset=offset, dims=dims)
