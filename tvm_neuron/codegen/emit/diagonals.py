"""Diagonals: stationary tiles that are made in SBUF just before use, since in DRAM they would be mostly zeros."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.codegen.emit.compact import Compact, block_mask, compact
from tvm_neuron.codegen.emit.corners import POOL_SHARE, is_made
from tvm_neuron.codegen.emit.emitter import WEIGHTS_QUEUE, Emitter
from tvm_neuron.codegen.emit.load_weights import Placed
from tvm_neuron.codegen.emit.weight_tiles import WeightTile, row_bytes
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps

_TILES = 2  # in SBUF: one that the PE array reads, and one that is being made

Diagonal = tuple[WeightTile, Compact]


@dataclass(frozen=True)
class Diagonals:
    """The tiles of a kernel and, one behind the other from byte `at` of each partition on, what is in their blocks."""

    tiles: tuple[WeightTile, ...]
    blocks: tuple[Compact, ...]
    at: int
    dtype: str

    @property
    def bytes_per_partition(self) -> int:
        """What all blocks take."""
        return sum(blocks.row_elems for blocks in self.blocks) * size_bytes(self.dtype)

    def placed(self, emitter: Emitter) -> Iterator[Placed]:
        """Each tile with its place, after the instructions that make it and the next one."""
        places = self._made(emitter)
        ready = list(islice(places, 2))
        while ready:
            yield ready.pop(0)
            ready += islice(places, 1)

    def _made(self, emitter: Emitter) -> Iterator[Placed]:
        source, ring = self.at, emitter.builder.diagonals
        for tile, blocks in zip(self.tiles, self.blocks, strict=True):
            rows, at = len(blocks.weights), ring.take(ring.capacity // _TILES)
            target, mask = _tile(self.dtype, rows, at, 1), _mask(emitter, blocks.depth, self.dtype)
            emitter.builder.emit(blocks.make(target, mask, _tile(self.dtype, rows, source, 1)))
            yield tile, at
            source += blocks.row_elems * size_bytes(self.dtype)


def load_diagonals(emitter: Emitter, kernel: Kernel, found: Sequence[Diagonal], dtype: str) -> Diagonals:
    """Brings all blocks of a kernel in one transfer, for rows are short."""
    tiles, blocks = zip(*found, strict=True)
    whole = np.zeros((max(len(part.weights) for part in blocks), sum(part.row_elems for part in blocks)), np.float32)
    start = 0
    for part in blocks:
        whole[: len(part.weights), start : start + part.row_elems] = part.weights.reshape(-1, part.row_elems)
        start += part.row_elems
    emitter.begin_weights()
    assert isinstance(kernel.root, Contraction)
    at = emitter.builder.weights.take(start * size_bytes(dtype), emitter.last_use(kernel.root.weights))
    _bring(emitter, f"{kernel.origins[0].name}.weights", whole, at, dtype, tiles[0].repeats)
    return Diagonals(tiles, blocks, at, dtype)


def diagonals(tiles: Sequence[WeightTile], dtype: str, device: Device, capacity: int) -> list[Diagonal] | None:
    """The tiles with their blocks, if all are diagonals that POOL makes sooner than their zeros come from DRAM.

    None too if `capacity` bytes of each partition, for all tiles that are there at a time, are too few.
    """
    if max((row_bytes(tile, dtype) for tile in tiles), default=0) > capacity // _TILES:
        return None
    found = [(tile, blocks) for tile in tiles if (blocks := compact(tile))]
    if not found or len(found) < len(tiles):
        return None
    making = transfer = 0
    for tile, blocks in found:
        place = _tile(dtype, len(blocks.weights), 0, 1)
        making += duration_ps(blocks.make(place, place, place).cost(device).busy_cycles, clock_hz(device, "pool"))
        zeros = (tile.row_elems - blocks.row_elems) * len(blocks.weights) * size_bytes(dtype)
        transfer += duration_ps(zeros, device.dram_bytes_per_second)
    return found if making < POOL_SHARE * transfer else None


def masks_bytes(kernels: Iterable[Kernel], device: Device) -> int:
    """Of each partition, for the masks of blocks of all depths in each dtype that grouped weights have."""
    return sum(2 * PARTITIONS * size_bytes(dtype) for dtype in {root.dtype for root in _grouped(kernels, device)})


def diagonals_bytes(kernels: Iterable[Kernel], device: Device) -> int:
    """Of each partition, for the tiles that are there at the same time."""
    sizes = (
        prod(axis.extent for axis in root.steps) * min(root.weights.shape[-1], device.pe_columns)
        * size_bytes(root.dtype) for root in _grouped(kernels, device)
    )  # fmt: skip
    return _TILES * aligned(max(sizes, default=0))


def _grouped(kernels: Iterable[Kernel], device: Device) -> Iterator[Contraction]:
    """Those of which tiles may be made."""
    for kernel in kernels:
        root = kernel.root
        if isinstance(root, Contraction) and is_made(root, device):
            yield root


def _mask(emitter: Emitter, depth: int, dtype: str) -> Tile:
    """The blocks of `depth` rows, which come with the first tile that needs them and stay for the others."""
    ring, columns = emitter.builder.masks, PARTITIONS // depth
    at = ring.find((depth, dtype))
    if at is None:
        size = columns * size_bytes(dtype)
        at = ring.take(size)
        ring.hold((depth, dtype), at, size, at)
        _bring(emitter, f"blocks of {depth}", block_mask(depth), at, dtype)
    return _tile(dtype, PARTITIONS, at, columns)


def _bring(emitter: Emitter, name: str, values: NDArray[Any], at: int, dtype: str, repeats: int = 1) -> None:
    rows, elems = values.shape
    index = emitter.builder.add_weight(name, values, dtype, repeats)
    source = DramTile(index, dtype, Affine(), ((elems, rows), (1, elems)))
    emitter.builder.emit(DmaCopy(target=_tile(dtype, rows, at, elems), source=source, ring=WEIGHTS_QUEUE))


def _tile(dtype: str, rows: int, at: int, elems: int) -> Tile:
    return Tile("sbuf", dtype, Affine(), rows, Affine(at), ((1, elems),))
