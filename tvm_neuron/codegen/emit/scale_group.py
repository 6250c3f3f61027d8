"""scale_group: stationary tiles times a value for each of their rows, made just before the PE array reads them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.regions import channel_maps
from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.codegen.emit.load_weights import Placed
from tvm_neuron.codegen.emit.weight_tiles import WeightTile
from tvm_neuron.isa import Activation, Affine, Instruction, TensorScalar, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps


def scaled_bytes(kernels: Iterable[Kernel]) -> int:
    """Of each partition, for all tiles of a kernel that multiplies by scaled weights."""
    return max(
        (bytes_when_scaled(k.root) for k in kernels if isinstance(k.root, Contraction) and k.root.scale), default=0
    )


def bytes_when_scaled(root: Contraction) -> int:
    """What all tiles of these weights take of each partition, at most: those of zeros alone need not be there."""
    depth, columns = -(-root.weights.shape[0] // PARTITIONS), prod(root.weights.shape[1:])
    return aligned(depth * columns * size_bytes(root.dtype))


def scale_group(emitter: Emitter, kernel: Kernel, loaded: Sequence[Placed]) -> list[Placed]:
    """The tiles with their places; scaled ones where the kernel's weights are to be scaled, else just these.

    ACT and POOL take turns, so that both are done at the same time.
    """
    root = kernel.root
    assert isinstance(root, Contraction)
    if root.scale is None:
        return list(loaded)
    at = emitter.builder.scaled.take(sum(tile.bytes_per_partition for tile, _ in loaded))
    scaled: list[Placed] = []
    busy = Counter[str]()
    for tile, source in loaded:
        for part, factor in _parts(emitter, root, tile):
            _emit_quicker(emitter, _moved(part, at), _moved(part, source), factor, busy)
        scaled.append((tile, at))
        at += tile.bytes_per_partition
    return scaled


def _parts(emitter: Emitter, root: Contraction, tile: WeightTile) -> Iterable[tuple[Tile, Tile]]:
    """What lies on the same partitions for the same summed channels, from byte 0 on, and the values for these."""
    assert root.scale is not None
    storage = emitter.storage(root.scale.tensor)
    assert isinstance(storage, OnChip), f"{root.scale.tensor} was not brought into SBUF"
    depth, maps = channel_maps(root, root.scale.maps, emitter.plan.partition_of[root.scale.tensor])
    each = tile.steps * tile.columns
    ends: dict[
        tuple[int, int], int
    ] = {}  # of the rows that are met, by depth tile and the chunk of channels that it meets
    for (first, size, count), index, _ in tile.depth_runs:
        for i in range(count):
            place = index + i, first // PARTITIONS + i
            ends[place] = max(ends.get(place, 0), first % PARTITIONS + size)
    for (index, chunk), rows in ends.items():
        dims = ((tile.row_elems, tile.run[2]), (1, each)) if tile.run[2] > 1 else ((1, each),)
        offset = Affine(index * each * size_bytes(root.dtype))
        factor = storage.tile(maps, depth, (), {depth: Span(chunk * PARTITIONS, rows)})
        yield Tile("sbuf", root.dtype, Affine(), rows, offset, dims), replace(factor, dims=((1, 1),))


def _moved(tile: Tile, at: int) -> Tile:
    return replace(tile, offset=tile.offset.plus(at))


def _emit_quicker(emitter: Emitter, result: Tile, source: Tile, factor: Tile, busy: Counter[str]) -> None:
    """On the engine that has it done sooner, behind what it was given before."""
    ways: tuple[Instruction, ...] = (
        Activation(result=result, source=source, scale=factor, bias=-0.0, function="copy"),
        TensorScalar(
            result=result, source=source, scalar0=factor, scalar1=0.0, op0="multiply", op1="bypass", reverse=0
        ),
    )  # fmt: skip
    device = emitter.device
    ends = [busy[way.engine] + duration_ps(way.cost(device).busy_cycles, clock_hz(device, way.engine)) for way in ways]
    way = ways[ends.index(min(ends))]
    busy[way.engine] = min(ends)
    emitter.builder.emit(way)
