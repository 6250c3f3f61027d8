"""emit_product, emit_transposition: what the PE array makes of operands that both lie in SBUF."""

from contextlib import ExitStack

from tvm_neuron.allocation.regions import grains
from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.array_tiles import ArrayTiles
from tvm_neuron.codegen.emit.chunks import has_chunks, in_chunks
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.isa import Matmul, Tile, Transpose
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Kernel, Operand, Product, Transposition
from tvm_neuron.schedule.partitions import starts
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, runs, tile_sizes


def emit_product(emitter: Emitter, kernel: Kernel) -> None:
    """Matmuls over the whole depth for each tile of the moving operand and each value of the batches' axes."""
    root = kernel.root
    assert isinstance(root, Product)
    batch = {axis for part in root.stationary.maps for axis in part.terms}
    alone = batch | grains(kernel, emitter.plan.partition_of).keys()  # one value in each matmul
    columns = [axis for axis in kernel.free if axis not in alone][1 - MAX_FREE_DIMS :]
    part = root.moving.maps[emitter.plan.partition_of[root.moving.tensor]]
    depth_runs = runs(root.depth.extent, starts(part, root.depth))
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        with emitter.staging(kernel, region, slot):
            sizes = tile_sizes(columns, region, emitter.device.moving_max_elems)
            for spans, psum in ArrayTiles(emitter, kernel, sizes, {}).emit(region):
                for number, run in enumerate(depth_runs):
                    _emit_depth(emitter, kernel, root, spans, psum, run, is_first=number == 0)


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


def emit_transposition(emitter: Emitter, kernel: Kernel) -> None:
    """One transposition for each run of the source's partitions, as wide as the array has columns."""
    root = kernel.root
    assert isinstance(root, Transposition)
    part = root.source.maps[emitter.plan.partition_of[root.source.tensor]]
    can_join = not emitter.chunks_apart and has_chunks(kernel, root.row, emitter.plan.partition_of)
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        low, high = region[root.row]
        with emitter.staging(kernel, region, slot):
            for start, size, count in runs(high - low, starts(part, root.row)):
                run = low + start, size, count
                if can_join and count > 1:
                    several, lane, chunk = in_chunks(kernel, root.row, run)
                    inside = {**region, lane: (0, size), chunk: (0, count)}
                    with emitter.joining():
                        _transpose(emitter, several, inside, {lane: [(0, size, 1)]})
                else:
                    _transpose(emitter, kernel, region, {root.row: [run]})


def _transpose(emitter: Emitter, kernel: Kernel, region: Region, rows: dict[Axis, list[Segment]]) -> None:
    root = kernel.root
    assert isinstance(root, Transposition)
    for spans, psum in ArrayTiles(emitter, kernel, {}, rows).emit(region):
        source = _tile(emitter, root.source, root.row, (kernel.channel,), spans)
        shape_of = Squeeze([psum])
        emitter.builder.emit(Transpose(psum=shape_of(psum), source=source))


def _tile(
    emitter: Emitter, operand: Operand, along: Axis, free: tuple[Axis, ...], spans: dict[Axis, Span]
) -> Tile:
    storage = emitter.storage(operand.tensor)
    assert isinstance(storage, OnChip), f"{operand.tensor} was not brought into SBUF"
    return storage.tile(operand.maps, along, free, spans)
