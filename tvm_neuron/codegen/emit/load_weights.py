"""load_group: stationary tiles by DMA into SBUF."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.codegen.emit.builder import Ring
from tvm_neuron.codegen.emit.corners import is_made
from tvm_neuron.codegen.emit.emitter import WEIGHTS_QUEUE, Emitter
from tvm_neuron.codegen.emit.factored import MANY_BLOCKS, factored
from tvm_neuron.codegen.emit.weight_tiles import WeightTile, row_bytes
from tvm_neuron.codegen.emit.weights_memory import WeightsMemory
from tvm_neuron.codegen.kernels.channels_of_ones import in_parts
from tvm_neuron.codegen.kernels.weights_as_moving import moving_bytes
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Memset, Tile, affine
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product
from tvm_neuron.schedule.tiling import PARTITIONS, runs, segments

GOOD_ROW_BYTES = 4096  # of one partition: AWS says a DMA does well from 2 KiB and is saturated at 4
_REST_BYTES = 256  # what is no longer keeps the engines of DMA longer by itself than behind a row of any length
_ONCE_SHARE = 4  # 1 / this of the ring, for a group of weights that are needed once
_OFTEN = 16  # kernels that multiply by the same weights
Placed = tuple[WeightTile, int]  # and the byte of each partition at which it lies


def group_bytes(emitter: Emitter, kernel: Kernel, tiles: Sequence[WeightTile]) -> int:
    """Bytes of a partition for a group of weights: little at a time of what is needed once, for more to come ahead.

    What several kernels multiply by lies there whole, and that of staged kernels too, which bring data for each group.
    """
    capacity, root = emitter.builder.weights.capacity, kernel.root
    assert isinstance(root, Contraction)
    if emitter.times_used(root.weights) > 1:
        return emitter.builder.weights.capacity_until(emitter.last_use(root.weights))
    if emitter.is_staged(kernel):
        return capacity
    least = max((row_bytes(tile, root.dtype) for tile in tiles), default=0)
    return min(capacity, max(capacity // _ONCE_SHARE, least))


def load_group(
    emitter: Emitter, group: Sequence[WeightTile], kernel: Kernel, dtype: str, memory: Ring | WeightsMemory,
    is_held: bool = False,
) -> list[Placed]:  # fmt: skip
    """Each tile with its place; the group takes one piece of the memory, since all of it is needed at once.

    What `is_held` for further kernels stays for good where these are many and it takes little: weights that come into
    its place would wait for the last of them.
    """
    size = sum(tile.bytes_per_partition for tile in group)
    assert isinstance(kernel.root, Contraction)
    times = emitter.times_used(kernel.root.weights) if is_held else 1
    if isinstance(memory, Ring):
        at = memory.take(size)
    else:
        pinned = memory.pin(size) if times >= _OFTEN else None
        until = emitter.last_use(kernel.root.weights) if is_held else 0
        at = memory.take(size, until) if pinned is None else pinned
    placed: list[Placed] = []
    for tiles in _together(group):
        index = _load(emitter, _joined(tiles) if len(tiles) > 1 else tiles[0], at, kernel, dtype)
        if kernel.root.has_zeros and not is_made(kernel.root, emitter.device):
            found = [factored(tile, MANY_BLOCKS) for tile in tiles]
            if None not in found:
                emitter.builder.factored[index] = tuple(filter(None, found))
        for tile in tiles:
            placed.append((tile, at))
            at += tile.bytes_per_partition
    return placed


def _together(group: Sequence[WeightTile]) -> list[list[WeightTile]]:
    """Tiles of as many rows one behind the other, as many as make a long row."""
    found: list[list[WeightTile]] = []
    for tile in group:
        last = found[-1] if found else []
        length = sum(part.bytes_per_partition for part in [*last, tile])
        is_rest = len(last) == 1 and last[0].run[2] == 1 and tile.bytes_per_partition <= _REST_BYTES
        if last and last[0].packed.shape[1] == tile.packed.shape[1] and (is_rest or length <= GOOD_ROW_BYTES):
            last.append(tile)
        else:
            found.append([tile])
    return found


def _joined(tiles: Sequence[WeightTile]) -> WeightTile:
    """Their rows as those of one, only to be loaded."""
    rows = [tile.packed.transpose(1, 0, 2).reshape(tile.packed.shape[1], -1) for tile in tiles]
    return replace(tiles[0], packed=np.concatenate(rows, axis=1)[None])


def _load(emitter: Emitter, tile: WeightTile, at: int, kernel: Kernel, dtype: str) -> int:
    """Brings them from a tensor, whose number it gives.

    In DRAM each partition's part of all tiles lies together, so that a transfer takes long rows of several tiles.
    """
    builder = emitter.builder
    emitter.begin_weights()
    count, rows, row_elems = tile.packed.shape
    packed = tile.packed.transpose(1, 0, 2)
    index = builder.add_weight(f"{kernel.origins[0].name}.weights", packed, dtype, tile.repeats)
    item = size_bytes(dtype)
    most = -(-GOOD_ROW_BYTES // row_bytes(tile, dtype))
    for start, tiles, repeat in segments(0, count, most):
        elems = tiles * row_elems
        with builder.loop(repeat) as depth:
            moved = [] if depth is None else [depth]
            into = affine(at + start * row_elems * item, [(d, elems * item) for d in moved])
            out_of = affine(start * row_elems, [(d, elems) for d in moved])
            builder.emit(
                DmaCopy(
                    target=Tile("sbuf", dtype, Affine(), rows, into, ((1, elems),)),
                    source=DramTile(index, dtype, out_of, ((count * row_elems, rows), (1, elems))),
                    ring=WEIGHTS_QUEUE,
                )
            )
    return index


def bring_moving(emitter: Emitter, kernel: Kernel, root: Product) -> None:
    """Brings weights that move along rows, as the PE array reads them, unless they are there from a kernel before."""
    tensor, memory = root.moving.tensor, emitter.builder.weights
    value = tensor.value
    assert value is not None
    held = memory.find(tensor)
    if held is None:
        size, until = moving_bytes(kernel, emitter.device), emitter.last_use(value)
        at = memory.take(size, until if size <= memory.capacity_until(until) else 0)
        held = _bring(emitter, kernel, value, root, at)
        memory.hold(tensor, at, size, held)
    elif memory.step < emitter.last_use(value):
        memory.keep(tensor)
    emitter.moving[tensor], emitter.bias = held


def _bring(
    emitter: Emitter, kernel: Kernel, value: NDArray[np.float32], root: Product, at: int
) -> tuple[OnChip, tuple[OnChip, Tile] | None]:
    """[K, N], 128 of the K behind each other, and the parts of the bias behind them."""
    item, (depth, columns) = size_bytes(root.dtype), value.shape
    emitter.begin_weights()
    for start, rows, count in runs(depth, [0]):
        packed = value[start : start + rows * count].reshape(count, rows, columns).transpose(1, 0, 2)
        place = at + start // PARTITIONS * columns * item
        name = f"{kernel.origins[0].name}.weights"
        emitter.bring_rows(name, packed.reshape(rows, -1), root.dtype, place, WEIGHTS_QUEUE)
    behind = aligned(at + -(-depth // PARTITIONS) * columns * item)
    bias = None if root.bias is None else _bring_bias(emitter, kernel, root.bias, root.dtype, behind)
    return OnChip(root.dtype, 0, at, (0, 0), (0, 1), columns), bias


def _bring_bias(
    emitter: Emitter, kernel: Kernel, bias: NDArray[np.float32], dtype: str, at: int
) -> tuple[OnChip, Tile]:
    """Its parts, and ones for as many rows as may be stationary at a time."""
    parts = in_parts(bias, dtype)
    assert parts is not None
    count, columns = parts.shape
    emitter.bring_rows(f"{kernel.origins[0].name}.bias", parts, dtype, at, WEIGHTS_QUEUE)
    behind = Affine(aligned(at + columns * size_bytes(dtype)))
    ones = Tile("sbuf", dtype, Affine(), count, behind, ((1, PARTITIONS),))
    emitter.builder.emit(Memset(result=ones, value=1.0))
    return OnChip(dtype, 0, at, (0, 0), (0, 1), columns), ones
