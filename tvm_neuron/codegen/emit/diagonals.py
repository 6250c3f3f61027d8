"""Diagonals: stationary tiles that are made in SBUF just before use, since in DRAM they would be mostly zeros."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.codegen.emit.corners import POOL_SHARE, is_made
from tvm_neuron.codegen.emit.emitter import WEIGHTS_QUEUE, Emitter
from tvm_neuron.codegen.emit.factored import Factored, factored, side_by_side
from tvm_neuron.codegen.emit.load_weights import Placed
from tvm_neuron.codegen.emit.weight_tiles import WeightTile, row_bytes
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps

_TILES = 2  # in SBUF: one that the PE array reads, and one that is being made
_MOST_SHARE = 4  # tiles that are made take 1 / this of SBUF at most: tensors and weights on their way need the rest

Diagonal = tuple[WeightTile, Factored]


@dataclass(frozen=True)
class Diagonals:
    """The tiles of a kernel and, one behind the other from byte `at` of each partition on, their numbers."""

    tiles: tuple[WeightTile, ...]
    factors: tuple[Factored, ...]
    at: int
    dtype: str

    @property
    def bytes_per_partition(self) -> int:
        """What all numbers take."""
        return sum(each.numbers[0].size for each in self.factors) * size_bytes(self.dtype)

    def placed(self, emitter: Emitter) -> Iterator[Placed]:
        """Each tile with its place, after the instructions that make it and the next one."""
        places = self._made(emitter)
        ready = list(islice(places, 2))
        while ready:
            yield ready.pop(0)
            ready += islice(places, 1)

    def _made(self, emitter: Emitter) -> Iterator[Placed]:
        source, ring = self.at, emitter.builder.diagonals
        for tile, each in zip(self.tiles, self.factors, strict=True):
            at, mask = ring.take(ring.capacity // _TILES), _mask(emitter, each.mask, self.dtype)
            emitter.builder.emit(each.make(self.dtype, at, mask, source))
            yield tile, at
            source += each.numbers[0].size * size_bytes(self.dtype)


def load_diagonals(emitter: Emitter, kernel: Kernel, found: Sequence[Diagonal], dtype: str) -> Diagonals:
    """Brings all numbers of a kernel in one transfer, for rows are short."""
    tiles, factors = zip(*found, strict=True)
    whole = side_by_side([each.numbers for each in factors])
    emitter.begin_weights()
    assert isinstance(kernel.root, Contraction)
    at = emitter.builder.weights.take(whole.shape[1] * size_bytes(dtype), emitter.last_use(kernel.root.weights))
    _bring(emitter, f"{kernel.origins[0].name}.weights", whole, at, dtype)
    return Diagonals(tiles, factors, at, dtype)


def diagonals(tiles: Sequence[WeightTile], dtype: str, device: Device, capacity: int) -> list[Diagonal] | None:
    """The tiles with their factors, if POOL makes all of them sooner than their zeros come from DRAM.

    None too if `capacity` bytes of each partition, for all tiles that are there at a time, are too few.
    """
    if max((row_bytes(tile, dtype) for tile in tiles), default=0) > capacity // _TILES:
        return None
    found = [(tile, each) for tile in tiles if (each := factored(tile))]
    if not found or len(found) < len(tiles):
        return None
    making = transfer = 0
    for _, each in found:
        making += duration_ps(each.make(dtype, 0, 0, 0).cost(device).busy_cycles, clock_hz(device, "pool"))
        zeros = len(each.numbers) * (each.row_elems - each.numbers[0].size) * size_bytes(dtype)
        transfer += duration_ps(zeros, device.dram_bytes_per_second)
    return found if making < POOL_SHARE * transfer else None


def masks_bytes(kernels: Iterable[Kernel], device: Device) -> int:
    """Of each partition, for two of the largest masks in each dtype that grouped weights have."""
    return sum(2 * PARTITIONS * size_bytes(dtype) for dtype in {root.dtype for root in _grouped(kernels, device)})


def diagonals_bytes(kernels: Iterable[Kernel], device: Device) -> int:
    """Of each partition, for the tiles that are there at the same time; larger ones come from DRAM."""
    sizes = (
        _TILES * aligned(
            prod(axis.extent for axis in root.steps) * min(root.weights.shape[-1], device.pe_columns)
            * size_bytes(root.dtype)
        ) for root in _grouped(kernels, device)
    )  # fmt: skip
    most = device.sbuf_bytes_per_partition // _MOST_SHARE
    return max((size for size in sizes if size <= most), default=0)


def _grouped(kernels: Iterable[Kernel], device: Device) -> Iterator[Contraction]:
    """Those of which tiles may be made."""
    for kernel in kernels:
        root = kernel.root
        if isinstance(root, Contraction) and is_made(root, device):
            yield root


def _mask(emitter: Emitter, mask: NDArray[np.bool_], dtype: str) -> int:
    """Where the mask is, which comes with the first tile that needs it and stays for the others."""
    ring, size = emitter.builder.masks, mask.shape[1] * size_bytes(dtype)
    key = (mask.shape, mask.tobytes(), dtype)
    at = ring.find(key)
    if at is None:
        at = ring.take(size)
        ring.hold(key, at, size, at)
        _bring(emitter, f"mask of {mask.shape[1]}", mask.astype(np.float32), at, dtype)
    return int(at)


def _bring(emitter: Emitter, name: str, values: NDArray[Any], at: int, dtype: str) -> None:
    rows, elems = values.shape
    index = emitter.builder.add_weight(name, values, dtype)
    source = DramTile(index, dtype, Affine(), ((elems, rows), (1, elems)))
    target = Tile("sbuf", dtype, Affine(), rows, Affine(at), ((1, elems),))
    emitter.builder.emit(DmaCopy(target=target, source=source, ring=WEIGHTS_QUEUE))
