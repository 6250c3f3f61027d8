"""emit_vector: reductions and elementwise kernels, tile by tile through the POOL and ACT engines."""

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.storage import PARTITIONS, OnChip, Span
from tvm_neuron.codegen.builder import Loops, Scratch
from tvm_neuron.codegen.emitter import Emitter, TileEnd, partition_firsts
from tvm_neuron.codegen.tiling import Region, Segment, Squeeze, contiguous, nests, runs, segments, tile_sizes
from tvm_neuron.isa import Tile, TensorReduce
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction

MAX_TILE_ELEMS = 512  # as many as a PSUM bank holds, so that all temporaries have one size


def emit_vector(emitter: Emitter, kernel: Kernel) -> None:
    """Emits a kernel without a contraction over all its strips."""
    root = kernel.root if isinstance(kernel.root, Reduction) else None
    firsts = partition_firsts(kernel, emitter.plan.partition_of, emitter.plan.in_dram)
    for slot, region in enumerate(emitter.plan.strips[kernel]):
        with emitter.staging(kernel, region, slot):
            sizes = _sizes(kernel, root, region)
            for run in runs(kernel.channel.extent, firsts):
                cuts: list[list[Segment]] = [[run]] + [segments(*region[axis], sizes[axis]) for axis in kernel.free]
                strides = [PARTITIONS, *(None for _ in kernel.free)]
                for spans, loops in nests(emitter.builder, (kernel.channel, *kernel.free), cuts, strides):
                    end = emitter.tiles(kernel, spans)
                    if root is None:
                        shape_of = Squeeze(end.patterns)
                        end.finish(shape_of, None, loops)
                    else:
                        _emit_reduction(emitter, kernel, root, spans, end, loops)


def _sizes(kernel: Kernel, root: Reduction | None, region: Region) -> dict:
    dims = MAX_FREE_DIMS - (len(root.axes) if root else 0)
    sizes = tile_sizes(kernel.free, region, MAX_TILE_ELEMS)
    for axis in kernel.free[: max(0, len(kernel.free) - dims)]:
        sizes[axis] = 1
    return sizes


def _emit_reduction(
    emitter: Emitter, kernel: Kernel, root: Reduction, spans: dict, end: TileEnd, loops: Loops
) -> None:
    storage = emitter.storage(root.load.tensor)
    assert isinstance(storage, OnChip)
    maps = linear_indices(root.load.indices) or ()
    inside = {**spans, **{axis: Span(0, axis.extent) for axis in root.axes}}
    source = storage.tile(maps, kernel.channel, (*kernel.free, *root.axes), inside)
    free = len(kernel.free)
    kept = Tile(source.space, source.dtype, source.partition, source.partitions, source.offset, source.dims[:free])
    shape_of = Squeeze([kept, *end.patterns])
    dims = shape_of.dims(kept.dims) + source.dims[free:]
    source = Tile(source.space, source.dtype, source.partition, source.partitions, source.offset, dims)
    builder = emitter.builder
    if kernel.expr is ROOT:
        result = shape_of(end.out)
        builder.emit(TensorReduce(result=result, source=source, op=root.combine, axes=len(root.axes)))
        return
    counts = [spans[axis].size for axis in kernel.free]
    whole = shape_of.dims(contiguous(counts))
    elems = 1
    for count in counts:
        elems *= count
    result = Scratch(builder.reduced, aligned(4 * elems), 1, loops).tile(spans[kernel.channel].size, whole)
    builder.emit(TensorReduce(result=result, source=source, op=root.combine, axes=len(root.axes)))
    end.finish(shape_of, result, loops)
