"""emit_product, emit_transposition: what the PE array makes of operands that both lie in SBUF."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import prod

from tvm_neuron.allocation.regions import grains
from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.array_tiles import ArrayTiles
from tvm_neuron.codegen.emit.chunks import has_chunks, in_chunks
from tvm_neuron.codegen.emit.emitter import Emitter, partition_firsts
from tvm_neuron.codegen.emit.heads import Heads, heads_together
from tvm_neuron.codegen.emit.joined import joined, keeps_engines_less
from tvm_neuron.codegen.emit.load_weights import bring_moving
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.kernels.channels_of_ones import ONES
from tvm_neuron.isa import Affine, Matmul, Tile, Transpose
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Product, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import starts
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, runs, tile_sizes
from tvm_neuron.sim.clock import clock_hz, duration_ps

_LEAST_CHUNKS = 4  # of what is turned, to leave together: fewer leave sooner one by one, by ACT and POOL in turns


def emit_product(emitter: Emitter, kernel: Kernel) -> None:
    """Matmuls over the whole depth for each tile of the moving operand and each value of the batches' axes."""
    root = kernel.root
    assert isinstance(root, Product)
    batch = {axis for part in root.stationary.maps for axis in part.terms}
    alone = batch | grains(kernel, emitter.plan.partition_of).keys()  # one value in each matmul
    columns = [axis for axis in kernel.free if axis not in alone][1 - MAX_FREE_DIMS :]
    part = root.moving.maps[emitter.plan.partition_of[root.moving.tensor]]
    depth_runs = runs(root.depth.extent, starts(part, root.depth))
    if root.moving.tensor.value is not None:
        bring_moving(emitter, kernel, root)
    heads = heads_together(kernel, emitter.plan.partition_of) if _is_plain(emitter, kernel) else None
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        with emitter.staging(kernel, region, slot):
            sizes = tile_sizes(columns, region, emitter.device.moving_max_elems)
            for spans, psum in _tiles(emitter, kernel, heads, sizes, region):
                for number, run in enumerate(depth_runs):
                    _emit_depth(emitter, kernel, root, spans, psum, run, is_first=number == 0)
                if root.bias is not None:
                    _emit_bias(emitter, kernel, root, spans, psum)


def _is_plain(emitter: Emitter, kernel: Kernel) -> bool:
    """Whether the kernel is emitted at once, from SBUF into SBUF."""
    return len(emitter.plan.strips[kernel]) == 1 and not emitter.is_staged(kernel) and kernel.out not in emitter.in_psum


def _tiles(
    emitter: Emitter, kernel: Kernel, heads: Heads | None, sizes: dict[Axis, int], region: Region
) -> Iterator[tuple[dict[Axis, Span], Tile]]:
    if heads is None:
        yield from ArrayTiles(emitter, kernel, sizes, {}).emit(region)
        return
    for spans, bank in ArrayTiles(emitter, heads.together, sizes, {}).emit(region):
        yield from heads.members(spans, bank)


def _emit_depth(
    emitter: Emitter, kernel: Kernel, root: Product, spans: dict[Axis, Span], psum: Tile,
    run: tuple[int, int, int], is_first: bool,
) -> None:  # fmt: skip
    """Matmuls over one run of the depth and all steps, which accumulate."""
    builder = emitter.builder
    start, size, count = run
    with ExitStack() as stack:
        depths = [stack.enter_context(builder.loop(n)) for n in (count, *(axis.extent for axis in root.steps))]
        inside = {**spans, root.depth: Span(start, size, depths[0], PARTITIONS)}
        inside |= {axis: Span(0, 1, depth, 1) for axis, depth in zip(root.steps, depths[1:], strict=True)}
        moving = _tile(emitter, root.moving, root.depth, kernel.free, inside)
        stationary = _tile(emitter, root.stationary, root.depth, (kernel.channel,), inside)
        shape_of = Squeeze([moving, psum])
        first = tuple(depth for depth in depths if depth is not None) if is_first else None
        builder.emit(Matmul(stationary=stationary, moving=shape_of(moving), psum=shape_of(psum), first=first))


def _emit_bias(emitter: Emitter, kernel: Kernel, root: Product, spans: dict[Axis, Span], psum: Tile) -> None:
    """Adds a bias to each row: ones times its parts."""
    assert emitter.bias is not None
    (parts, ones), part = emitter.bias, Axis("part", ONES)
    maps = Linear(0, {part: 1}), *root.moving.maps[1:]
    moving = parts.tile(maps, part, kernel.free, {**spans, part: Span(0, ONES)})
    shape_of = Squeeze([moving, psum])
    stationary = replace(ones, dims=((1, spans[kernel.channel].size),))
    matmul = Matmul(stationary=stationary, moving=shape_of(moving), psum=shape_of(psum), first=None)
    emitter.builder.emit(matmul)


def emit_transposition(emitter: Emitter, kernel: Kernel) -> None:
    """One transposition for each run of the source's partitions, as wide as the array has columns."""
    root = kernel.root
    assert isinstance(root, Transposition)
    part = root.source.maps[emitter.plan.partition_of[root.source.tensor]]
    can_join = not emitter.chunks_apart and has_chunks(kernel, root.row, emitter.plan.partition_of)
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        low, high = region[root.row]
        with emitter.staging(kernel, region, slot):
            for each, spans, apart in _by_channels(emitter, kernel, region):
                for start, size, count in runs(high - low, starts(part, root.row)):
                    run = low + start, size, count
                    if can_join and count > 1:
                        several, lane, chunk = in_chunks(each, root.row, run)
                        inside = {**spans, lane: (0, size), chunk: (0, count)}
                        with emitter.joining():
                            _transpose(emitter, several, inside, {lane: [(0, size, 1)]}, apart)
                    else:
                        _transpose(emitter, each, spans, {root.row: [run]}, apart)


def _by_channels(emitter: Emitter, kernel: Kernel, region: Region) -> Iterator[tuple[Kernel, Region, Axis | None]]:
    """The kernel over each run of its channels where one instruction brings several chunks out of a bank; else it all.

    With the axis over these chunks. Rows of a few elements, as those of windows, would take an instruction for each 128
    otherwise. Of what is only moved: constants for each channel lie apart for each chunk.
    """
    plan, device = emitter.plan, emitter.device
    found = runs(emitter.channels(kernel), partition_firsts(kernel, plan.partition_of, plan.in_dram), device.pe_columns)
    first = max(found, key=lambda run: run[2])
    is_moved = kernel.expr is ROOT and kernel.out not in emitter.in_psum
    together = joined(emitter, kernel, first) if is_moved else None
    elems = prod(high - low for axis, (low, high) in region.items() if axis in kernel.free)
    most = min(device.moving_max_elems // (1 << (elems - 1).bit_length()), first[2])
    if together is None or most < _LEAST_CHUNKS:
        yield kernel, region, None
        return
    several, lane, chunk = together
    tile = {axis: Span(low, high - low) for axis, (low, high) in region.items() if axis in kernel.free}
    tile |= {lane: Span(0, first[1]), chunk: Span(0, most)}
    # The first chunk leaves when all others are there, too.
    psum = Tile("psum", "float32", Affine(), first[1], Affine(), ((1, elems),))
    source = Tile("sbuf", "bfloat16", Affine(), min(elems, PARTITIONS), Affine(), ((1, first[1]),))
    each_ps = duration_ps(Transpose(psum=psum, source=source).cost(device).busy_cycles, clock_hz(device, "pe"))
    if not keeps_engines_less(emitter, kernel, several, chunk, tile, first[0], (most - 1) * each_ps):
        yield kernel, region, None
        return
    for run in found:
        each, _, chunk = in_chunks(kernel, kernel.channel, run)
        yield each, {**region, chunk: (0, run[2])}, chunk


def _transpose(
    emitter: Emitter, kernel: Kernel, region: Region, rows: dict[Axis, list[Segment]], chunk: Axis | None
) -> None:
    root = kernel.root
    assert isinstance(root, Transposition)
    for spans, psum in ArrayTiles(emitter, kernel, {}, rows, chunk).emit(region):
        source = _tile(emitter, root.source, root.row, (kernel.channel,), spans)
        shape_of = Squeeze([psum])
        emitter.builder.emit(Transpose(psum=shape_of(psum), source=source))


def _tile(
    emitter: Emitter, operand: Operand, along: Axis, free: tuple[Axis, ...], spans: dict[Axis, Span]
) -> Tile:
    storage = emitter.storage(operand.tensor)
    assert isinstance(storage, OnChip), f"{operand.tensor} was not brought into SBUF"
    return storage.tile(operand.maps, along, free, spans)
