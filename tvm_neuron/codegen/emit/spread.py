"""spread: weights of depthwise convolutions, each brought to its place in stationary tiles that are zero otherwise.

Such a tile has one number for each partition and step of the window. A transfer may start elsewhere in each partition,
and the zeros beside stay there for the next layer: see `slots`. The array then reads columns that are not side by side,
at half the bandwidth: 64 cycles for 128 columns, which is no longer than the shortest matmul that hides it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.corners import is_made
from tvm_neuron.codegen.emit.emitter import SPREAD_QUEUE, Emitter
from tvm_neuron.codegen.emit.load_weights import Placed
from tvm_neuron.codegen.emit.slots import ITEM, Slots
from tvm_neuron.codegen.emit.weight_tiles import WeightTile
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS, Segment
from tvm_neuron.sim.clock import clock_hz, duration_ps

_MOST_TAKEN = 54  # numbers of a column by one transfer: six windows of 3 x 3, two of 5 x 5, one of 7 x 7
_MOST_PITCH = 6 * _MOST_TAKEN  # so far ahead do they come: other weights that were ready before them go first
_RING_SHARE = 4  # 1 / this of the memory for other weights at most goes to slots: these still come far ahead
_LAYERS, _LAYERS_FIRST = 4, 2  # as large as the largest, for which slots have room; where their zeros come first
_EVEN = 2  # numbers: the DMA of NeuronCore-v1 is not at its best at writes of other than multiples of 4 bytes


@dataclass(frozen=True)
class Diagonal:
    """[channels, steps] weights of the run of output channels `run`, which read those from channel `first` on."""

    run: Segment
    first: int
    weights: NDArray[Any]


def slots_for(
    kernels: Iterable[Kernel], device: Device, end: int, room: int, ring: int, is_first: bool = False
) -> Slots:
    """Slots before byte `end`: none if they take more than `room`, or longer to zero than they save.

    They may take a little of the `ring` that other weights have before them. Where all else waits for their zeros
    (`is_first`), there are fewer.
    """
    spread = spread_roots(kernels, device)
    layers = _LAYERS_FIRST if is_first else _LAYERS
    needs = {root: _even(-(-root.weights.shape[-1] // PARTITIONS) * _steps(root)) for root in spread}
    if not needs:
        return Slots()
    largest = max(spread, key=needs.__getitem__)
    fitting = _whole_transfers(room // (PARTITIONS * ITEM), _steps(largest), ring)
    # Of the largest layer, the numbers have come for the next ones while the array reads others.
    most = min(_MOST_PITCH, sum(needs.values()), needs[largest] * layers, fitting)
    pitch = most // _EVEN * _EVEN
    saved = sum(_whole_ps(root, device) - _spread_ps(root, device) for root in spread)
    zeroing = duration_ps(PARTITIONS * pitch // 2, clock_hz(device, "pool"))
    if pitch < min(needs[largest], _MOST_TAKEN) or zeroing > saved:
        return Slots()
    slots = Slots(0, pitch)
    slots.base = end - slots.bytes_per_partition
    return slots


def spread_roots(kernels: Iterable[Kernel], device: Device) -> list[Contraction]:
    """Those whose weights come to slots, if there are any."""
    roots = [kernel.root for kernel in kernels if isinstance(kernel.root, Contraction)]
    uses = Counter(id(root.weights) for root in roots)
    return [root for root in roots if uses[id(root.weights)] == 1 and is_spread(root, device)]


def _whole_transfers(fitting: int, steps: int, ring: int) -> int:
    """The `fitting` numbers of a column; more, if the last transfer's that fit in part would take little of the ring.

    What comes for one of these columns alone comes as late as without them.
    """
    each = _even(_MOST_TAKEN // steps * steps)
    more = -fitting % each
    return fitting + more if fitting >= each and more * PARTITIONS * ITEM <= ring // _RING_SHARE else fitting


def is_spread(root: Contraction, device: Device) -> bool:
    """Whether its weights are diagonals that come sooner as such than with their zeros."""
    if not root.has_zeros or root.repeats > 1 or root.side or root.scale or is_made(root, device):
        return False
    is_short = size_bytes(root.dtype) == ITEM and _even(_steps(root)) <= _MOST_TAKEN
    return is_short and root.is_diagonal and _spread_ps(root, device) < _whole_ps(root, device)


def spread_tiles(emitter: Emitter, kernel: Kernel, channels: Sequence[Segment], data_first: int) -> list[Diagonal]:
    """The diagonals of the output channels, single runs; none if that is not how they come."""
    root = kernel.root
    assert isinstance(root, Contraction)
    if not emitter.builder.slots.pitch or emitter.times_used(root.weights) > 1 or emitter.keeps.get(kernel, 0):
        return []
    if not is_spread(root, emitter.device):
        return []
    single = [(start + i * PARTITIONS, size, 1) for start, size, count in channels for i in range(count)]
    found = [_diagonal(root, run, data_first) for run in single]
    return [part for part in found if part] if all(found) else []


def load_spread(emitter: Emitter, kernel: Kernel, parts: Sequence[Diagonal], data_first: int) -> Iterator[list[Placed]]:
    """The tiles with their places, as many together as a slot has room for."""
    slots, root = emitter.builder.slots, kernel.root
    assert isinstance(root, Contraction)
    steps = _steps(root)
    for blocks in _grouped(_blocks(parts, data_first), min(_MOST_TAKEN, slots.pitch) // steps):
        rows = max(_first(part, data_first) + part.run[1] for block in blocks for part in block)
        whole = np.zeros((rows, _even(len(blocks) * steps)), np.float32)
        first = slots.take(whole.shape[1])
        for instruction in slots.zero_until(first + whole.shape[1]):
            emitter.builder.emit(instruction)
        at = slots.base + first * ITEM
        placed: list[Placed] = []
        for number, block in enumerate(blocks):
            for part in block:
                low, (_, size, _) = _first(part, data_first), part.run
                whole[low : low + size, number * steps : (number + 1) * steps] = part.weights
                tile = WeightTile(part.run, (((part.first, size, 1), 0, 0),), part.weights[None], size, 1, slots.pitch)
                placed.append((tile, at + (low * slots.pitch + number * steps) * ITEM))
        emitter.begin_weights()
        index = emitter.builder.add_weight(f"{kernel.origins[0].name}.weights", whole, root.dtype)
        elems = whole.shape[1]
        target = Tile("sbuf", root.dtype, Affine(), rows, Affine(at), ((1, elems),), slots.pitch * ITEM)
        source = DramTile(index, root.dtype, Affine(), ((elems, rows), (1, elems)))
        emitter.builder.emit(DmaCopy(target=target, source=source, ring=SPREAD_QUEUE))
        yield placed


def _diagonal(root: Contraction, run: Segment, data_first: int) -> Diagonal | None:
    """The weights of a run of output channels, if each of these reads one channel, all on partitions side by side."""
    start, size, _ = run
    rows = root.rows_met(start, start + size)
    if len(rows) != size or rows[-1] - rows[0] != size - 1:
        return None
    first = int(rows[0])
    at = (data_first + first) % PARTITIONS
    block = root.weights[first : first + size, ..., start : start + size]
    own = np.moveaxis(np.diagonal(block, axis1=0, axis2=block.ndim - 1), -1, 0).reshape(size, -1)
    if np.count_nonzero(own) != np.count_nonzero(block) or at + size > PARTITIONS or at % partition_start_step(size):
        return None
    return Diagonal(run, first, own)


def _blocks(parts: Sequence[Diagonal], data_first: int) -> list[list[Diagonal]]:
    """Parts that lie behind each other on the partitions have the same numbers of their columns."""
    found: list[list[Diagonal]] = []
    free = PARTITIONS
    for part in parts:
        at = _first(part, data_first)
        if at < free:
            found.append([])
        found[-1].append(part)
        free = at + part.run[1]
    return found


def _grouped(blocks: Sequence[list[Diagonal]], most: int) -> Iterator[Sequence[list[Diagonal]]]:
    return (blocks[start : start + most] for start in range(0, len(blocks), most))


def _first(part: Diagonal, data_first: int) -> int:
    return (data_first + part.first) % PARTITIONS


def _steps(root: Contraction) -> int:
    return prod(axis.extent for axis in root.steps)


def _even(count: int) -> int:
    return -(-count // _EVEN) * _EVEN


def _whole_ps(root: Contraction, device: Device) -> int:
    """From DRAM, with all zeros beside the diagonals."""
    channels = root.weights.shape[-1]
    elems = _steps(root) * channels * min(channels, device.pe_columns)
    return duration_ps(elems * size_bytes(root.dtype), device.dram_bytes_per_second)


def _spread_ps(root: Contraction, device: Device) -> int:
    """A descriptor for each partition."""
    channels, most = root.weights.shape[-1], _MOST_TAKEN // _steps(root)
    groups = -(-channels // (PARTITIONS * most))
    return groups * min(channels, PARTITIONS) * device.dma_descriptor_ns * 1000 // device.dma_engines
