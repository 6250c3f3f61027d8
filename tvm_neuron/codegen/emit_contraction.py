"""emit_contraction: weights by DMA into a ring, then matmuls tile by tile into PSUM, and the arithmetic on the way out."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.storage import PARTITIONS, OnChip, Span
from tvm_neuron.codegen.emitter import Emitter, partition_firsts
from tvm_neuron.codegen.regions import data_maps
from tvm_neuron.codegen.tiling import Region, Segment, Squeeze, contiguous, nests, runs, segments, tile_sizes
from tvm_neuron.errors import CompileError
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Matmul, Tile, affine
from tvm_neuron.isa.dtypes import DTYPES, size_bytes
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear

WEIGHTS_QUEUE = 0
GOOD_ROW_BYTES = 4096  # of one partition: AWS says a DMA does well from 2 KiB and is saturated at 4


@dataclass(frozen=True)
class WeightTile:
    """Stationary tiles of one run of output channels: [tiles, rows, depth tiles * steps * size]."""

    run: Segment
    depth_runs: tuple[tuple[Segment, int], ...]  # (run of summed channels, index of its first tile)
    packed: NDArray[Any]

    @property
    def row_elems(self) -> int:
        """Elements of one partition."""
        return int(self.packed.shape[2])


def emit_contraction(emitter: Emitter, kernel: Kernel) -> None:
    """Emits the kernel over all its strips.

    Raises:
        CompileError: the weights of a single tile exceed the memory for weights.
    """
    root = kernel.root
    assert isinstance(root, Contraction)
    builder, dtype = emitter.builder, emitter.matmul_dtype
    tiles = _weight_tiles(emitter, kernel, root)
    if emitter.is_staged(kernel):
        tiles = _in_order(tiles)
    for group in _groups(tiles, builder.weights.capacity, kernel, dtype):
        loaded = _load_group(emitter, group, kernel, dtype)
        channels = min(t.run[0] for t in group), max(t.run[0] + PARTITIONS * (t.run[2] - 1) + t.run[1] for t in group)
        for slot, region in enumerate(emitter.plan.strips[kernel]):
            with emitter.staging(kernel, {**region, kernel.channel: channels}, slot):
                for tile, offset in loaded:
                    _emit_run(emitter, kernel, root, region, tile, offset)


def _weight_tiles(emitter: Emitter, kernel: Kernel, root: Contraction) -> list[WeightTile]:
    data_first = root.maps[emitter.plan.partition_of[root.data]].const
    firsts = partition_firsts(kernel, emitter.plan.partition_of, emitter.plan.in_dram)
    depth = runs(root.weights.shape[0], [data_first])
    found = []
    for run in runs(kernel.channel.extent, firsts, emitter.device.pe_columns):
        parts = [run] if not root.has_zeros else [(run[0] + i * PARTITIONS, run[1], 1) for i in range(run[2])]
        for part in parts:
            used = _used_depth(root, depth, part) if root.has_zeros else depth
            found.append(_pack(root, part, used, data_first, emitter.matmul_dtype))
    return found


def _in_order(tiles: list[WeightTile]) -> list[WeightTile]:
    """Single tiles by output channel, so that any group of them covers a range of channels (which can be staged)."""
    single = [
        WeightTile((start + i * PARTITIONS, size, 1), tile.depth_runs, tile.packed[i : i + 1])
        for tile in tiles
        for start, size, count in [tile.run]
        for i in range(count)
    ]
    return sorted(single, key=lambda tile: tile.run[0])


def _used_depth(root: Contraction, depth: Sequence[Segment], run: Segment) -> list[Segment]:
    """The runs of summed channels that this run of output channels depends on at all."""
    single = [(start + i * PARTITIONS, size, 1) for start, size, count in depth for i in range(count)]
    columns = root.weights[..., run[0] : run[0] + run[1]]
    used = [part for part in single if np.any(columns[part[0] : part[0] + part[1]])]
    return used or single[:1]


def _pack(root: Contraction, run: Segment, depth: Sequence[Segment], data_first: int, dtype: str) -> WeightTile:
    """Rows lie on the partitions of the data that they meet; each row holds its depth tiles, steps and columns."""
    start, size, count = run
    steps = prod(axis.extent for axis in root.steps)
    weights = root.weights.reshape(root.weights.shape[0], steps, root.weights.shape[-1])
    rows = max((data_first + first) % PARTITIONS + length for first, length, _ in depth)
    tiles = sum(repeat for _, _, repeat in depth)
    packed = np.zeros((count, rows, tiles, steps, size), DTYPES[dtype])
    index = 0
    placed: list[tuple[Segment, int]] = []
    for first, length, repeat in depth:
        placed.append(((first, length, repeat), index))
        row = (data_first + first) % PARTITIONS
        for j in range(repeat):
            part = weights[first + j * PARTITIONS :][:length]
            for i in range(count):
                packed[i, row : row + length, index] = part[..., start + i * PARTITIONS :][..., :size]
            index += 1
    return WeightTile(run, tuple(placed), packed.reshape(count, rows, -1))


def _groups(tiles: list[WeightTile], capacity: int, kernel: Kernel, dtype: str) -> list[list[WeightTile]]:
    """Weight tiles in groups that fit in the ring; runs are cut where they are too long."""
    item = size_bytes(dtype)
    total = sum(tile.packed.shape[0] * tile.row_elems * item for tile in tiles)
    room = capacity if total <= capacity else capacity // 2
    groups: list[list[WeightTile]] = [[]]
    free = room
    for tile in tiles:
        each = tile.row_elems * item
        if each > capacity:
            raise CompileError(
                f"{kernel.origins[0].op} '{kernel.origins[0].name}': the weights of one tile take {each} bytes of each "
                f"partition; {capacity} are there for weights"
            )
        done = 0
        while done < tile.packed.shape[0]:
            fits = min(max(free // each, 0 if groups[-1] else 1), tile.packed.shape[0] - done)
            if fits == 0:
                groups.append([])
                free = room
                continue
            start, size, _ = tile.run
            run = (start + done * PARTITIONS, size, fits)
            groups[-1].append(WeightTile(run, tile.depth_runs, tile.packed[done : done + fits]))
            free -= fits * each
            done += fits
    return groups


def _load_group(
    emitter: Emitter, group: list[WeightTile], kernel: Kernel, dtype: str
) -> list[tuple[WeightTile, int]]:
    """Each tile with its place; the group takes one piece of the ring, since all of it is needed at once."""
    sizes = [tile.packed.shape[0] * tile.row_elems * size_bytes(dtype) for tile in group]
    at = emitter.builder.weights.take(sum(sizes))
    placed = [(tile, at + sum(sizes[:i])) for i, tile in enumerate(group)]
    for tile, offset in placed:
        _load_weights(emitter, tile, offset, kernel, dtype)
    return placed


def _load_weights(emitter: Emitter, tile: WeightTile, at: int, kernel: Kernel, dtype: str) -> None:
    """In DRAM each partition's part of all tiles lies together, so that a transfer takes long rows of several tiles."""
    builder = emitter.builder
    count, rows, row_elems = tile.packed.shape
    index = builder.add_weight(f"{kernel.origins[0].name}.weights", tile.packed.transpose(1, 0, 2), dtype)
    item = size_bytes(dtype)
    most = -(-GOOD_ROW_BYTES // (row_elems * item))
    for start, tiles, repeat in segments(0, count, most):
        elems = tiles * row_elems
        with builder.loop(repeat) as depth:
            moved = [] if depth is None else [depth]
            offset = affine(at + start * row_elems * item, [(d, elems * item) for d in moved])
            builder.emit(
                DmaCopy(
                    target=Tile("sbuf", dtype, Affine(), rows, offset, ((1, elems),)),
                    source=DramTile(
                        index, dtype, affine(start * row_elems, [(d, elems) for d in moved]),
                        ((count * row_elems, rows), (1, elems)),
                    ),
                    ring=WEIGHTS_QUEUE,
                )
            )  # fmt: skip


def _emit_run(emitter: Emitter, kernel: Kernel, root: Contraction, region: Region, tile: WeightTile, at: int) -> None:
    sizes = tile_sizes(kernel.free, region, emitter.device.moving_max_elems)
    cuts: list[list[Segment]] = [[tile.run]] + [segments(*region[axis], sizes[axis]) for axis in kernel.free]
    strides = [PARTITIONS, *(None for _ in kernel.free)]
    depth_axis, maps = data_maps(root, emitter.plan.partition_of[root.data])
    data = emitter.storage(root.data)
    assert isinstance(data, OnChip)
    for spans, loops in nests(emitter.builder, (kernel.channel, *kernel.free), cuts, strides):
        whole = _data_tile(data, maps, depth_axis, kernel, spans, root, (), tile.depth_runs[0][0])
        outer = emitter.tiles(kernel, spans)
        counts = [spans[axis].size for axis in kernel.free]
        psum_dims = contiguous(counts)
        rows = spans[kernel.channel].size
        shape_of = Squeeze([whole, *outer.patterns, Tile("psum", "float32", Affine(), rows, Affine(), psum_dims)])
        psum = emitter.builder.psum_tile(rows, shape_of.dims(psum_dims), loops)
        first = True
        for run, index in tile.depth_runs:
            _emit_depth(emitter, kernel, root, tile, run, index, at, spans, data, maps, depth_axis, shape_of, psum, first)
            first = False
        outer.finish(shape_of, psum, loops)


def _emit_depth(
    emitter: Emitter, kernel: Kernel, root: Contraction, tile: WeightTile, run: Segment, index: int, at: int,
    spans: dict[Axis, Span], data: OnChip, maps: tuple[Linear, ...], depth_axis: Axis, shape_of: Squeeze, psum: Tile,
    is_first: bool,
) -> None:  # fmt: skip
    builder, dtype = emitter.builder, emitter.matmul_dtype
    start, size, count = run
    columns = tile.run[1]
    item = size_bytes(dtype)
    steps = prod(axis.extent for axis in root.steps)
    channel = spans[kernel.channel]
    with ExitStack() as stack:
        depth = stack.enter_context(builder.loop(count))
        step_depths = [stack.enter_context(builder.loop(axis.extent)) for axis in root.steps]
        terms = [(d, move) for d, move in ((channel.depth, tile.row_elems), (depth, steps * columns)) if d is not None]
        inner = steps
        for axis, step_depth in zip(root.steps, step_depths, strict=True):
            inner //= axis.extent
            if step_depth is not None:
                terms.append((step_depth, inner * columns))
        moving = _data_tile(data, maps, depth_axis, kernel, spans, root, (depth, *step_depths), run)
        stationary = Tile(
            "sbuf", dtype, moving.partition, size,
            affine(at + index * steps * columns * item, [(d, move * item) for d, move in terms]), ((1, columns),),
        )  # fmt: skip
        loops = tuple(d for d in (depth, *step_depths) if d is not None)
        builder.emit(
            Matmul(stationary=stationary, moving=shape_of(moving), psum=psum, first=loops if is_first else None)
        )


def _data_tile(
    data: OnChip, maps: tuple[Linear, ...], depth_axis: Axis, kernel: Kernel, spans: dict[Axis, Span], root: Contraction,
    depths: Sequence[int | None], run: Segment,
) -> Tile:  # fmt: skip
    depths = depths or (None,) * (1 + len(root.steps))
    inside = {axis: spans[axis] for axis in kernel.free}
    inside[depth_axis] = Span(run[0], run[1], depths[0], PARTITIONS)
    for axis, depth in zip(root.steps, depths[1:], strict=True):
        inside[axis] = Span(0, 1, depth, 1)
    return data.tile(maps, depth_axis, kernel.free, inside)
