"""emit_contraction: weights by DMA into a ring, then matmuls tile by tile into PSUM, and the arithmetic on the way."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from math import prod

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.memory_plan import MemoryPlan
from tvm_neuron.allocation.regions import data_maps
from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.array_tiles import BYTES as PSUM_ITEM
from tvm_neuron.codegen.emit.builder import Ring
from tvm_neuron.codegen.emit.diagonals import Diagonals, diagonals, load_diagonals
from tvm_neuron.codegen.emit.emitter import Emitter, partition_firsts
from tvm_neuron.codegen.emit.joined import joined, keeps_engines_less
from tvm_neuron.codegen.emit.load_weights import Placed, group_bytes, load_group
from tvm_neuron.codegen.emit.nests import nests
from tvm_neuron.codegen.emit.scale_group import scale_group
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.tile_end import TileEnd
from tvm_neuron.codegen.emit.weight_tiles import (
    WeightTile,
    groups,
    in_order,
    split_tiles,
    tiles_bytes,
    weight_tiles,
)
from tvm_neuron.codegen.emit.weights_memory import WeightsMemory
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, Matmul, Tile, affine
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.tile import MAX_FREE_DIMS, Dims
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, contiguous, runs, segments, tile_sizes
from tvm_neuron.sim.clock import clock_hz, duration_ps


def emit_contraction(emitter: Emitter, kernel: Kernel) -> None:
    """Emits the kernel, a group of weights after the other, each over all strips.

    Raises:
        CompileError: the weights of a single tile exceed the memory for weights.
    """
    root = kernel.root
    assert isinstance(root, Contraction)
    plan = emitter.plan
    channels, data_first = runs_of(kernel, plan.partition_of, plan.in_dram, emitter.device)
    builder = emitter.builder
    # Kernels that run in tiles multiply by the same weights again and again, which may still be there.
    key = (id(root.weights), tuple(channels), data_first, root.dtype, emitter.is_staged(kernel))
    held = builder.weights.find(key)
    if held is not None and builder.weights.step < emitter.last_use(root.weights):
        builder.weights.keep(key)
    if isinstance(held, Diagonals):
        _emit_diagonals(emitter, kernel, held)
        return
    if held is not None:
        _emit_group(emitter, kernel, held)
        return
    tiles = weight_tiles(kernel, channels, data_first, emitter.device)
    if emitter.is_staged(kernel):
        tiles = in_order(tiles)
    kept, rest = split_tiles(tiles, emitter.keeps.get(kernel, 0))
    is_made = root.has_zeros and root.scale is None
    blocks = diagonals(rest, root.dtype, emitter.device, builder.diagonals.capacity) if is_made else None
    every: list[tuple[list[WeightTile], Ring | WeightsMemory]]
    every = [(group, builder.resident) for group in groups(kept, builder.resident.capacity, kernel)]
    most = group_bytes(emitter, kernel, rest)
    every += [] if blocks else [(group, builder.weights) for group in groups(rest, most, kernel)]
    for group, memory in every:
        is_held = len(every) == 1 and memory is builder.weights
        with builder.loading_once() if memory is builder.resident else nullcontext():
            loaded = load_group(emitter, group, kernel, root.dtype, memory, is_held)
        if is_held:
            builder.weights.hold(key, loaded[0][1], sum(tile.bytes_per_partition for tile in group), loaded)
        _emit_group(emitter, kernel, loaded)
    if blocks:
        made = load_diagonals(emitter, kernel, blocks, root.dtype)
        if not every:
            builder.weights.hold(key, made.at, made.bytes_per_partition, made)
        _emit_diagonals(emitter, kernel, made)


def _emit_group(emitter: Emitter, kernel: Kernel, loaded: list[Placed]) -> None:
    """All that these weights are needed for, strip by strip."""
    scaled: list[Placed] = []
    for region in _strips(emitter, kernel, [tile for tile, _ in loaded]):
        scaled = scaled or scale_group(emitter, kernel, loaded)
        for tile, at in scaled:
            _Run(emitter, kernel, tile, at).emit(region)


def _emit_diagonals(emitter: Emitter, kernel: Kernel, made: Diagonals) -> None:
    """The same with tiles that are made for each strip."""
    for region in _strips(emitter, kernel, made.tiles):
        for tile, at in made.placed(emitter):
            _Run(emitter, kernel, tile, at).emit(region)


def _strips(emitter: Emitter, kernel: Kernel, tiles: Sequence[WeightTile]) -> Iterator[Region]:
    """The kernel's strips, one after the other staged for the channels of these tiles."""
    channels = [tile.run for tile in tiles]
    end = max(start + PARTITIONS * (n - 1) + m for start, m, n in channels)
    covered = min(start for start, _, _ in channels), min(end, kernel.channel.extent)
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        with emitter.staging(kernel, {**region, kernel.channel: covered}, slot):
            yield region


def runs_of(
    kernel: Kernel, partition_of: Mapping[Tensor, int], in_dram: Container[Tensor], device: Device
) -> tuple[list[Segment], int]:
    """The runs of output channels, and the partition of the data's channel 0 where the PE array reads them."""
    root = kernel.root
    assert isinstance(root, Contraction)
    firsts = partition_firsts(kernel, partition_of, in_dram)
    # Rows that lie side by side fit on the columns, and each may start where its place in the output does.
    side = [(0, root.weights.shape[-1], 1)] if root.side else None
    channels = side or runs(kernel.channel.extent, firsts, device.pe_columns)
    return channels, 0 if root.data in in_dram else root.maps[partition_of[root.data]].const


def kept_bytes(kernel: Kernel, plan: MemoryPlan, device: Device) -> int:
    """Bytes of each partition that all weights of the kernel take."""
    root = kernel.root
    assert isinstance(root, Contraction)
    return aligned(tiles_bytes(kernel, *runs_of(kernel, plan.partition_of, plan.in_dram, device), device))


@dataclass
class _Run:
    """One run of output channels, whose weights lie at byte `at` of each partition."""

    emitter: Emitter
    kernel: Kernel
    tile: WeightTile
    at: int

    def __post_init__(self) -> None:
        assert isinstance(self.kernel.root, Contraction)
        self.root = self.kernel.root
        self.depth_axis, self.maps = data_maps(self.root, self.emitter.plan.partition_of[self.root.data])

    def emit(self, region: Region) -> None:
        """All tiles of the region: matmuls over the whole depth into a PSUM bank, then the way out."""
        kernel, builder, side = self.kernel, self.emitter.builder, self.root.side
        first, columns, count = self.tile.run
        if self._emit_together(region):
            return
        free = [axis for axis in kernel.free if axis is not side]
        # What lies side by side leaves one after the other: small tiles keep ACT closer behind the PE array.
        most = self.emitter.device.moving_max_elems // (side.extent if side else 1)
        sizes = tile_sizes(free, region, most)
        rows = columns // (side.extent if side else 1)
        channels = kernel.channel.extent if side else columns
        self._step_outer(free, sizes, {kernel.channel: Span(first, channels)}, region)
        cuts: list[list[Segment]] = [[(first, channels, count)]]
        cuts += [segments(*region[axis], sizes[axis]) for axis in free]
        strides = [PARTITIONS, *(None for _ in free)]
        for spans, loops in nests(builder, (kernel.channel, *free), cuts, strides):
            each = [{**spans, side: Span(at, 1)} for at in range(*region[side])] if side else [spans]
            ends = [TileEnd(self.emitter, kernel, part) for part in each]
            dims = contiguous([each[0][axis].size for axis in kernel.free])
            shape_of = self._shape_of(ends, each[0], dims)
            stays = kernel.out in self.emitter.in_psum
            psum = shape_of(ends[0].out) if stays else builder.psum_tile(columns, shape_of.dims(dims), loops)
            self._emit_sums(each[0], shape_of, psum)
            if stays:
                continue
            for part, end in zip(each, ends, strict=True):
                low = part[side].start * rows if side else 0
                end.finish(shape_of, replace(psum, partition=Affine(low), partitions=channels), loops)

    def _emit_together(self, region: Region) -> bool:
        """All chunks of few elements into one bank, for one way out; whether that keeps engines for less time."""
        emitter, kernel, (first, columns, count) = self.emitter, self.kernel, self.tile.run
        elems = prod(high - low for axis, (low, high) in region.items() if axis in kernel.free)
        stays = kernel.out in emitter.in_psum
        if self.root.side or stays or elems * count > emitter.device.moving_max_elems:
            return False
        found = joined(emitter, kernel, self.tile.run)
        if found is None:
            return False
        several, lane, chunk = found
        free = {axis: Span(low, high - low) for axis, (low, high) in region.items() if axis in kernel.free}
        spans = {**free, lane: Span(0, columns), chunk: Span(0, count)}
        dims = contiguous([spans[axis].size for axis in several.free])
        alone = {**free, kernel.channel: Span(first, columns)}
        if len(self._shape_of([], alone, dims[1:]).groups) > MAX_FREE_DIMS:
            return False
        # The way out of the first chunk begins when those of all others are added up, too.
        later_ps = (count - 1) * self._sums_ps(alone, dims[1:])
        if not keeps_engines_less(emitter, kernel, several, chunk, spans, first, later_ps):
            return False
        end = TileEnd(emitter, several, spans)
        way_out = Squeeze([*end.patterns, Tile("psum", "float32", Affine(), columns, Affine(), dims)])
        bank = emitter.builder.psum_tile(columns, way_out.dims(dims), ())
        with emitter.joining(), emitter.builder.loop(count) as depth:
            one = {**free, kernel.channel: Span(first, columns, depth, PARTITIONS, count)}
            moved = [] if depth is None else [(depth, elems * PSUM_ITEM)]
            place = replace(bank, offset=affine(bank.offset.base, moved, bank.offset.phase, bank.offset.wrap))
            shape_of = self._shape_of([], one, dims[1:])
            self._emit_sums(one, shape_of, replace(place, dims=shape_of.dims(dims[1:])))
        with emitter.joining():
            end.finish(way_out, bank, ())
        return True

    def _sums_ps(self, spans: dict[Axis, Span], dims: Dims) -> int:
        """How long the PE array takes for one chunk."""
        device, depths = self.emitter.device, (None,) * (1 + len(self.root.steps))
        shape_of, found = self._shape_of([], spans, dims), 0
        for run, _, low in self.tile.depth_runs:
            moving = shape_of(self._moving(spans, run, depths))
            columns = self.tile.columns
            stationary = Tile("sbuf", self.root.dtype, moving.partition, run[1], Affine(), ((1, columns),))
            psum = Tile("psum", "float32", Affine(low), columns, Affine(), shape_of.dims(dims))
            cost = Matmul(stationary=stationary, moving=moving, psum=psum, first=()).cost(device)
            found += run[2] * duration_ps(cost.busy_cycles, clock_hz(device, "pe"))
        return found * self.tile.steps

    def _emit_sums(self, spans: dict[Axis, Span], shape_of: Squeeze, psum: Tile) -> None:
        """Matmuls over the whole depth."""
        begun: set[int] = set()
        for run, index, low in self.tile.depth_runs:
            corner = replace(psum, partition=psum.partition.plus(low), partitions=self.tile.columns)
            self._emit_depth(spans, run, index, shape_of, corner, is_first=low not in begun)
            begun.add(low)

    def _step_outer(self, free: list[Axis], sizes: dict[Axis, int], channels: dict[Axis, Span], region: Region) -> None:
        """Leaves the outermost axes to loops until an access pattern has room for what is left.

        What is repeated along an axis joins no neighbour, so that few axes may be too many.
        """
        side = {} if self.root.side is None else {self.root.side: Span(region[self.root.side][0], 1)}
        for axis in free:
            if sum(size > 1 for size in sizes.values()) <= MAX_FREE_DIMS:
                return
            spans = {**channels, **side, **{other: Span(region[other][0], sizes[other]) for other in free}}
            dims = contiguous([spans[other].size for other in self.kernel.free])
            if len(self._shape_of([TileEnd(self.emitter, self.kernel, spans)], spans, dims).groups) <= MAX_FREE_DIMS:
                return
            sizes[axis] = 1

    def _shape_of(self, ends: Sequence[TileEnd], spans: dict[Axis, Span], dims: Dims) -> Squeeze:
        """The common shape of the data of a tile, of its sums with `dims`, and of all that its end reads and writes."""
        moving = self._moving(spans, self.tile.depth_runs[0][0], (None,) * (1 + len(self.root.steps)))
        patterns = [pattern for end in ends for pattern in end.patterns]
        columns = self.tile.run[1]
        return Squeeze([moving, *patterns, Tile("psum", "float32", Affine(), columns, Affine(), dims)])

    def _emit_depth(
        self, spans: dict[Axis, Span], run: Segment, index: int, shape_of: Squeeze, psum: Tile, is_first: bool
    ) -> None:
        """Matmuls over one run of summed channels and all steps; `index` is the run's first depth tile."""
        builder, dtype = self.emitter.builder, self.root.dtype
        _, size, count = run
        columns, item = self.tile.columns, size_bytes(dtype)
        inner = steps = self.tile.steps
        with ExitStack() as stack:
            depths = [stack.enter_context(builder.loop(n)) for n in (count, *(n for _, n in self.tile.places))]
            moves = [(spans[self.kernel.channel].depth, self.tile.row_elems), (depths[0], steps * columns)]
            for (_, places), depth in zip(self.tile.places, depths[1:], strict=True):
                inner //= places
                moves.append((depth, inner * columns))
            moving = self._moving(spans, run, depths)
            offset = affine(
                self.at + index * steps * columns * item, [(d, move * item) for d, move in moves if d is not None]
            )
            stationary = Tile("sbuf", dtype, moving.partition, size, offset, ((1, columns),))
            first = tuple(depth for depth in depths if depth is not None) if is_first else None
            builder.emit(Matmul(stationary=stationary, moving=shape_of(moving), psum=psum, first=first))

    def _moving(self, spans: dict[Axis, Span], run: Segment, depths: Sequence[int | None]) -> Tile:
        """The data of one run of summed channels, at the places of the window of the loops at `depths`."""
        data = self.emitter.storage(self.root.data)
        assert isinstance(data, OnChip)
        inside = {axis: spans[axis] for axis in self.kernel.free}
        inside[self.depth_axis] = Span(run[0], run[1], depths[0], PARTITIONS)
        for axis, (first, _), depth in zip(self.root.steps, self.tile.places, depths[1:], strict=True):
            inside[axis] = Span(first, 1, depth, 1)
        maps: tuple[Linear, ...] = self.maps
        return data.tile(maps, self.depth_axis, self.kernel.free, inside)
