"""emit_gather: kernels that choose by positions known at run time, by DMA with computed addresses."""

from dataclasses import replace
from itertools import product
from math import prod

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.allocation.storage import InDram, Span
from tvm_neuron.codegen.emit.emitter import MAX_COPY_FREE_AXES, MOVE_QUEUE, Emitter, squeezed
from tvm_neuron.codegen.emit.movement import fix, outer_axes, runs_of
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.isa import DmaGather, DramTile, Tile
from tvm_neuron.isa.dtypes import DTYPES, MATMUL_DTYPES
from tvm_neuron.schedule.kernel import Gather, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS


def emit_gather(emitter: Emitter, kernel: Kernel) -> None:
    """Emits the transfers; axes that no pattern has room for take one each."""
    root = kernel.root
    assert isinstance(root, Gather)
    target, chosen_from = emitter.storage(kernel.out), _in_dram(emitter, kernel, root)
    positions = emitter.brought(kernel, root.positions.tensor)
    outer = outer_axes(kernel, target)
    free = [axis for axis in kernel.free if axis not in outer]
    outer += free[: max(0, len(free) - MAX_COPY_FREE_AXES)]
    inner = [axis for axis in free if axis not in outer]
    step, extent = chosen_from.strides[root.dims[-1]], prod(root.data.tensor.shape[dim] for dim in root.dims)
    for values in product(*(range(axis.extent) for axis in outer)):
        fixed = dict(zip(outer, values, strict=True))
        to, out_of, at = (fix(maps, fixed) for maps in (kernel.out_maps, root.data.maps, root.positions.maps))
        for start, size, count in runs_of(kernel, kernel.channel.extent, (target, to), (positions, at)):
            with emitter.builder.loop(count) as depth:
                spans = {kernel.channel: Span(start, size, depth, PARTITIONS, count)}
                spans |= {axis: Span(0, axis.extent) for axis in inner}
                tiles = [
                    storage.tile(maps, kernel.channel, inner, spans)
                    for storage, maps in ((target, to), (chosen_from, out_of), (positions, at))
                ]
                shape_of = Squeeze(tiles, leading=1)
                into, source, where = (squeezed(tile, shape_of) for tile in tiles)
                assert isinstance(source, DramTile)
                assert isinstance(where, Tile)
                source = replace(source, dims=((step, extent), *source.dims))
                ring = emitter.queue(MOVE_QUEUE)
                emitter.builder.emit(DmaGather(target=into, source=source, positions=where, ring=ring))


def _in_dram(emitter: Emitter, kernel: Kernel, root: Gather) -> InDram:
    """Where the data lie; floats known at compile time in the dtype of the result, so that no more bytes are moved."""
    data, dtype = root.data.tensor, emitter.plan.dtypes[kernel.out]
    if data.value is not None and dtype in ("float32", *MATMUL_DTYPES):
        # Rows along the partitions, each in one piece, behind the dimensions in which positions choose.
        channels = {d for d, part in enumerate(root.data.maps) if kernel.channel in part.terms}
        order = sorted(range(len(data.shape)), key=lambda d: (d > root.dims[-1], d not in channels, d))
        index = emitter.builder.add_weight(data.name, data.value.astype(DTYPES[dtype]).transpose(order), dtype)
        return InDram(index, dtype, dram_strides(data.shape, order))
    found = emitter.storage(data)
    assert isinstance(found, InDram)  # see `separate_gathers`
    return found
