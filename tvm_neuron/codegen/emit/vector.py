"""emit_vector: reductions and elementwise kernels, tile by tile through the POOL and ACT engines."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from math import prod
from weakref import WeakKeyDictionary

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.regions import grains
from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.builder import Loops, Scratch
from tvm_neuron.codegen.emit.chunks import in_chunks
from tvm_neuron.codegen.emit.emitter import Emitter, partition_firsts
from tvm_neuron.codegen.emit.joined import busy_ps, joined, keeps_engines_less
from tvm_neuron.codegen.emit.nests import nests
from tvm_neuron.codegen.emit.scan import Scanner
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.statistics import emit_statistics, parts_of, statistics_bytes
from tvm_neuron.codegen.emit.taken import innermost, most_bytes_taken
from tvm_neuron.codegen.emit.tile_end import TileEnd
from tvm_neuron.codegen.emit.totals import Totalling, total_of
from tvm_neuron.hw import Device
from tvm_neuron.isa import Memset, TensorReduce, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.schedule.expr import Apply, Axis, Num, axes_of
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction, Scan, Statistics, is_read_backward
from tvm_neuron.schedule.partitions import turns
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, contiguous, runs, segments, tile_sizes

_MOST_PARTS = 256  # of a reduction
_PART_ELEMS = 256  # of it: little is left to do when the last tile is written
_AT_ONCE = {ROOT: "", Apply("multiply", (ROOT, Num(-1.0))): "negated_"}
"""What POOL's reductions do besides: nothing, or a change of sign; and what their names begin with then."""
MAX_TILE_ELEMS = 512  # as many as a PSUM bank holds, so that all temporaries have one size
_LEAST_SCRATCH = 2 * 4 * MAX_TILE_ELEMS
_SCRATCH: WeakKeyDictionary[Kernel, int] = WeakKeyDictionary()
"""By kernel, which has its place in many plans, and is of one device."""


def scratch_bytes(kernels: Iterable[Kernel], device: Device) -> int:
    """Bytes of each partition for the temporaries of two tiles, so that one tile's work overlaps the next one's."""
    return max((_scratch_of(kernel, device) for kernel in kernels if not kernel.by_dma), default=_LEAST_SCRATCH)


def _scratch_of(kernel: Kernel, device: Device) -> int:
    if kernel not in _SCRATCH:
        elems = tile_elems(kernel, device)
        _SCRATCH[kernel] = max(_LEAST_SCRATCH, _taken(kernel, elems, device), _taken_of_rows(kernel, elems, device))
    return _SCRATCH[kernel]


def reduced_bytes(kernels: Iterable[Kernel]) -> int:
    """Bytes of each partition for what two tiles of reductions leave to the arithmetic behind, or to a last step."""
    return 2 * 4 * MAX_TILE_ELEMS if any(_keeps_reduced(kernel) for kernel in kernels) else 0


def _keeps_reduced(kernel: Kernel) -> bool:
    """Whether it reduces to something else than its output: to values for its arithmetic, or to parts of one value."""
    root = kernel.root
    is_in_parts = isinstance(root, Statistics | Scan) or kernel.expr not in _AT_ONCE or not kernel.free
    return isinstance(root, Reduction) and is_in_parts


def scratch_limit(device: Device) -> int:
    """What temporaries may take of the bytes of each partition."""
    return device.sbuf_bytes_per_partition * 2 // 5


def tile_elems(kernel: Kernel, device: Device) -> int:
    """Elements of the kernel's tiles in each partition: halved until temporaries fit, if instructions stay as quick."""
    elems = MAX_TILE_ELEMS
    if kernel.root is None:
        while elems > device.elementwise_min_cycles and _taken(kernel, elems, device) > scratch_limit(device):
            elems //= 2
    return elems


def _taken(kernel: Kernel, elems: int, device: Device) -> int:
    """Of the kernel as it is, and with chunks of channels in one instruction, where these have few elements."""
    least, inner, chunks = device.elementwise_min_cycles, innermost(kernel), -(-kernel.channel.extent // PARTITIONS)
    taken = most_bytes_taken(kernel, elems, least)
    of_all = chunks * prod(axis.extent for axis in kernel.free)
    if chunks > 1 and (inner is None or inner.extent < least or of_all <= elems):
        several, *_ = in_chunks(kernel, kernel.channel, (0, PARTITIONS, chunks))
        taken = max(taken, most_bytes_taken(several, min(elems, of_all), least))
    return 2 * taken


def _taken_of_rows(kernel: Kernel, elems: int, device: Device) -> int:
    """Of the kernel with several rows in one instruction; nothing where each row has its own."""
    if not _stepped(kernel, device):
        return 0
    taken = 2 * most_bytes_taken(kernel, elems, elems + 1)
    return taken if taken <= scratch_limit(device) else 0


def emit_vector(emitter: Emitter, kernel: Kernel) -> None:
    """Emits a kernel without a contraction over all its strips; of sums that are there, what is computed from them."""
    if kernel in emitter.kept and kernel.expr is ROOT:
        return
    root = kernel.root if isinstance(kernel.root, Reduction) else None
    firsts = partition_firsts(kernel, emitter.plan.partition_of, emitter.plan.in_dram)
    elems = tile_elems(kernel, emitter.device)
    periods = grains(kernel, emitter.plan.partition_of)
    filled: set[tuple[object, ...]] = set()
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        with emitter.staging(kernel, region, slot):
            if _is_filled(emitter, kernel, region, filled):
                continue
            sizes = _sizes(kernel, root, region, emitter.device, elems)
            total = None if periods else total_of(emitter, kernel, region, sizes)
            scan = Scanner(emitter, kernel, root) if isinstance(root, Scan) else None
            if total is not None:
                sizes = total.sizes(sizes)
                emitter.kept.add(total.kernel)
            for run in runs(emitter.channels(kernel), firsts):
                if _fill_chunks(emitter, kernel, region, run):
                    continue
                together = None if periods or total is not None else _together(emitter, kernel, region, run)
                if together is not None:
                    with emitter.joining():
                        _emit_tiles(emitter, *together)
                    continue
                wide = None if periods or total is not None else _rows_together(emitter, kernel, region, run, sizes)
                if wide is not None:
                    _emit_tiles(emitter, kernel, region, wide, run)
                    continue
                cuts: list[list[Segment]] = [[run]]
                strides: list[int | None] = [PARTITIONS]
                for axis in kernel.free:
                    every = periods.get(axis)
                    whole = segments(*region[axis], sizes[axis])
                    cuts.append(turns(*region[axis], PARTITIONS // every) if every else whole)
                    strides.append(every)
                for spans, loops in nests(emitter.builder, (kernel.channel, *kernel.free), cuts, strides):
                    end = TileEnd(emitter, kernel, spans)
                    if total is not None:
                        sums = total.tile(emitter, spans)
                        end.finish(Squeeze(end.patterns), None, loops, partial(Totalling, total=sums))
                    elif scan is not None:
                        scan.emit(spans, end.out)
                    elif root is None:
                        end.finish(Squeeze(end.patterns), None, loops)
                    else:
                        _emit_reduction(emitter, kernel, root, spans, end, loops)


def _is_filled(emitter: Emitter, kernel: Kernel, region: Region, filled: set[tuple[object, ...]]) -> bool:
    """Whether a number that goes to device memory is still where a strip before, of the same extents, has put it."""
    staged = emitter.storage(kernel.out)
    is_number = kernel.root is None and isinstance(kernel.expr, Num) and kernel.out in emitter.plan.in_dram
    if not is_number or not isinstance(staged, OnChip):
        return False
    place = staged.offset, staged.strides, *(high - low for low, high in region.values())
    is_there = place in filled
    filled.add(place)
    return is_there


def _together(
    emitter: Emitter, kernel: Kernel, region: Region, run: Segment
) -> tuple[Kernel, Region, dict[Axis, int]] | None:
    """The kernel over a run of channels with several chunks in each instruction; None where one fills it.

    A reduction's instructions read as many elements as others write: they start as soon.
    """
    found = joined(emitter, kernel, run)
    if found is None:
        return None
    several, lane, chunk = found
    root = several.root if isinstance(several.root, Reduction) else None
    inside = {**region, lane: (0, lane.extent), chunk: (0, chunk.extent)}
    sizes = _sizes(several, root, inside, emitter.device, tile_elems(several, emitter.device))
    read_of_each = prod(axis.extent for axis in root.axes) if root else 1
    room = MAX_TILE_ELEMS // (read_of_each * prod(size for axis, size in sizes.items() if axis is not chunk))
    sizes[chunk] = min(sizes[chunk], room)
    tile = {axis: Span(low, sizes.get(axis, high - low)) for axis, (low, high) in inside.items()}
    if sizes[chunk] < 2 or not keeps_engines_less(emitter, kernel, several, chunk, tile, run[0]):
        return None
    return several, inside, sizes


def _rows_together(
    emitter: Emitter, kernel: Kernel, region: Region, run: Segment, by_rows: dict[Axis, int]
) -> dict[Axis, int] | None:
    """Tile sizes with several rows in each instruction, where an operand has one value a row: it is read as a tile.

    None where an instruction for each row keeps the engines for less time.
    """
    elems = tile_elems(kernel, emitter.device)
    if not _taken_of_rows(kernel, elems, emitter.device):
        return None
    wide = _limited(kernel, 0, region, elems)
    steps = prod(-(-wide[axis] // by_rows[axis]) for axis in kernel.free)
    tiles = [{axis: Span(region[axis][0], size) for axis, size in sizes.items()} for sizes in (by_rows, wide)]
    each, all_of_them = (busy_ps(emitter, kernel, {**tile, kernel.channel: Span(*run[:2])}) for tile in tiles)
    if each is None or all_of_them is None or all_of_them >= steps * each:
        return None
    return wide


def _emit_tiles(
    emitter: Emitter, kernel: Kernel, region: Region, sizes: dict[Axis, int], run: Segment | None = None
) -> None:
    """Tile by tile over a run of channels, or over all, which lie in one chunk."""
    run = run or (0, kernel.channel.extent, 1)
    cuts = [[run], *(segments(*region[axis], sizes[axis]) for axis in kernel.free)]
    strides = [PARTITIONS, *(None for _ in kernel.free)]
    for spans, loops in nests(emitter.builder, (kernel.channel, *kernel.free), cuts, strides):
        end = TileEnd(emitter, kernel, spans)
        if isinstance(kernel.root, Reduction):
            _emit_reduction(emitter, kernel, kernel.root, spans, end, loops)
        else:
            end.finish(Squeeze(end.patterns), None, loops)


def _fill_chunks(emitter: Emitter, kernel: Kernel, region: Region, run: Segment) -> bool:
    """Fills a few elements of several chunks of channels in one instruction, which costs 64 cycles at least."""
    (start, size, count), storage = run, emitter.storage(kernel.out)
    elems = prod(high - low for low, high in region.values())
    if not isinstance(kernel.expr, Num) or count == 1 or elems * count > MAX_TILE_ELEMS:
        return False
    assert isinstance(storage, OnChip), f"{kernel.out} was not given a place in SBUF"
    if not storage.chunk_elems:  # all chunks of what is spread lie on one another
        return False
    spans = {axis: Span(low, high - low) for axis, (low, high) in region.items()} | {kernel.channel: Span(start, size)}
    tile = storage.tile(kernel.out_maps, kernel.channel, kernel.free, spans)
    dims = ((storage.chunk_elems, count), *Squeeze([tile])(tile).dims)
    if len(dims) > MAX_FREE_DIMS:
        return False
    emitter.builder.emit(Memset(result=replace(tile, dims=dims), value=float(kernel.expr.value)))
    return True


def _sizes(kernel: Kernel, root: Reduction | None, region: Region, device: Device, elems: int) -> dict[Axis, int]:
    """Tile sizes, together of up to `elems`.

    An access pattern has room for only so many dimensions, and goes forwards: other axes get loops.
    So do axes along which an operand changes that is the same along the innermost one: in each of their steps it is one
    value for each partition, which engines take on the way.
    """
    if kernel.whole:
        return {axis: axis.extent if axis in kernel.whole else 1 for axis in kernel.free}
    sizes = _limited(kernel, len(root.axes) if root else 0, region, elems)
    return sizes | dict.fromkeys(_stepped(kernel, device), 1)


def _limited(kernel: Kernel, reduced: int, region: Region, elems: int) -> dict[Axis, int]:
    """Tile sizes for patterns that have to go over `reduced` axes besides, which go forwards."""
    sizes = tile_sizes(kernel.free, region, elems)
    for place, axis in enumerate(kernel.free):
        if place < len(kernel.free) - (MAX_FREE_DIMS - reduced) or is_read_backward(kernel, axis):
            sizes[axis] = 1
    return sizes


def _stepped(kernel: Kernel, device: Device) -> set[Axis]:
    """Axes along which an operand has one value for each step of theirs, where a row fills an instruction."""
    inner = innermost(kernel)
    if inner is None or kernel.root is not None or inner.extent < device.elementwise_min_cycles:
        return set()
    by_row = [set(axes_of(load)) for load in kernel.operand_loads()]
    return {axis for axes in by_row if inner not in axes for axis in axes} & set(kernel.free)


def _emit_reduction(
    emitter: Emitter, kernel: Kernel, root: Reduction, spans: dict[Axis, Span], end: TileEnd, loops: Loops
) -> None:
    storage = emitter.storage(root.load.tensor)
    assert isinstance(storage, OnChip)
    inside = {**spans, **{axis: Span(0, axis.extent) for axis in root.axes}}
    maps = linear_indices(root.load.indices) or ()
    source = storage.tile(maps, kernel.channel, (*kernel.free, *root.axes), inside)
    free = len(kernel.free)
    if isinstance(root, Statistics):
        row = replace(source, dims=source.dims[free:])
        parts = parts_of(Squeeze([row])(row), emitter.device)
        slot = Scratch(emitter.builder.reduced, aligned(statistics_bytes(parts)), loops)
        emit_statistics(emitter.builder, Squeeze([end.out])(end.out), parts, slot)
        return
    shape_of = Squeeze([replace(source, dims=source.dims[:free]), *end.patterns])
    source = replace(source, dims=shape_of.dims(source.dims[:free]) + source.dims[free:])
    axes, counts = len(root.axes), [spans[axis].size for axis in kernel.free]
    if kernel in emitter.kept:
        end.finish(shape_of, shape_of(end.out), loops)
        return
    sign = _AT_ONCE.get(kernel.expr)
    op = f"{sign or ''}{root.combine}"
    if not _keeps_reduced(kernel):
        emitter.builder.emit(TensorReduce(result=shape_of(end.out), source=source, op=op, axes=axes))
        return
    parts = [] if kernel.free else _parts(source, axes)
    slot = Scratch(emitter.builder.reduced, aligned(4 * prod(counts)) + aligned(4 * len(parts)), loops)
    if sign is not None:
        result = shape_of(end.out)
    else:
        result = slot.tile(spans[kernel.channel].size, shape_of.dims(contiguous(counts)))
    if parts:
        source = slot.tile(source.partitions, ((1, len(parts)),))
        for number, part in enumerate(parts):
            place = replace(source, offset=source.offset.plus(4 * number), dims=((1, 1),))
            emitter.builder.emit(TensorReduce(result=place, source=part, op=root.combine, axes=axes))
        axes = 1
    emitter.builder.emit(TensorReduce(result=result, source=source, op=op, axes=axes))
    if sign is None:
        end.finish(shape_of, result, loops)


def _parts(source: Tile, axes: int) -> list[Tile]:
    """A long reduction to one value as some along its outermost axis, each of which starts when its part is written."""
    (step, count), *inner = source.dims[-axes:]
    size = max(1, _PART_ELEMS // prod(n for _, n in inner), -(-count // _MOST_PARTS))
    size = -(-count // -(-count // size))  # as even as tiles are
    if source.free_elems <= MAX_TILE_ELEMS or count <= size:
        return []
    return [
        replace(
            source, offset=source.offset.plus(start * step * size_bytes(source.dtype)),
            dims=(*source.dims[:-axes], (step, min(size, count - start)), *inner),
        )
        for start in range(0, count, size)
    ]  # fmt: skip
