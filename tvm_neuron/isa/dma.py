"""DMA: moves any strided pattern between DRAM and SBUF, converting the dtype on the way."""

from collections.abc import Sequence
from math import ceil, prod

import numpy as np

from tvm_neuron.errors import PositionError, ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import WORDS, size_bytes
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.operand import reads, uint, writes
from tvm_neuron.isa.tile import MAX_DRAM_DIMS, DramTile, Tile


class DmaCopy(Instruction, opcode=0x40, engine="dma", mnemonic="dma_copy"):
    """target[*N] = source[*N], through queue `ring`; an SBUF side counts its partitions as the first dimension."""

    target: Tile | DramTile = writes("sbuf", "dram")
    source: Tile | DramTile = reads("sbuf", "dram")
    ring: int = uint(0, 7)

    @property
    def queue(self) -> str:
        return f"dma{self.ring}"

    def check(self, device: Device) -> None:
        if self.target.shape != self.source.shape or len(self.target.shape) > MAX_DRAM_DIMS:
            raise ProgramError(
                f"dma_copy: from {list(self.source.shape)} to {list(self.target.shape)}; both sides must have one "
                f"shape of at most {MAX_DRAM_DIMS} dimensions"
            )

    def compute(self, *sources: Array) -> Array:
        return sources[0]

    def cost(self, device: Device) -> Cost:
        run = min(_run_elems(side) for side in (self.target, self.source))
        busy, moved = _transfer(device, self.target, self.source, run)
        turned = _turned_elems(device, self.target, self.source)
        if run == 1 and turned:
            most, _ = _transfer(device, self.target, self.source, turned)
            busy = min(busy, ceil(most * 100 / device.dma_transpose_percent))
        return Cost(busy, device.dma_start_ns, dram_bytes=moved)


class DmaGather(Instruction, opcode=0x41, engine="dma", mnemonic="dma_gather"):
    """target[*N] = source[positions[*N], *N], through queue `ring`; each position must lie in the first dimension."""

    target: Tile | DramTile = writes("sbuf", "dram")
    source: DramTile = reads("dram")
    positions: Tile = reads("sbuf")
    ring: int = uint(0, 7)

    @property
    def queue(self) -> str:
        return f"dma{self.ring}"

    def check(self, device: Device) -> None:
        if not device.dma_indirect_ns:
            raise ProgramError(f"dma_gather: {device.name} has no descriptors with computed addresses")
        if self.positions.dtype not in WORDS:
            raise ProgramError(f"dma_gather: positions are {self.positions.dtype}; they must be int32 or uint32")
        shape = self.target.shape
        if self.positions.shape != shape or self.source.shape[1:] != shape or len(shape) >= MAX_DRAM_DIMS:
            raise ProgramError(
                f"dma_gather: from {list(self.source.shape)} at {list(self.positions.shape)} to {list(shape)}; the "
                f"target and the positions must have one shape of at most {MAX_DRAM_DIMS - 1} dimensions, and the "
                "source one more before it"
            )

    def compute(self, *sources: Array) -> Array:
        source, positions = sources
        axis = -1 - len(self.target.shape)
        outside = (positions < 0) | (positions >= source.shape[axis])
        if np.any(outside):
            raise PositionError(
                f"position {positions[outside].flat[0]} lies outside of the {source.shape[axis]} elements that it "
                "chooses from (negative ones were counted from the end): give indices within them",
                self.origin,
            )
        found: Array = np.take_along_axis(source, np.expand_dims(positions, axis), axis)
        return found.squeeze(axis)

    def cost(self, device: Device) -> Cost:
        row = DramTile(self.source.tensor, self.source.dtype, self.source.offset, self.source.dims[1:])
        run = min(_run_elems(self.target), _run_elems(row), _repeats(self.positions.dims))
        busy, moved = _transfer(device, self.target, row, run)
        return Cost(busy, device.dma_start_ns + device.dma_indirect_ns, dram_bytes=moved)


def _transfer(device: Device, target: Tile | DramTile, source: Tile | DramTile, run: int) -> tuple[int, int]:
    """Nanoseconds of the DMA engines, and bytes over the DRAM's interface; a descriptor covers `run` elements.

    The engines together carry as many bytes as the core can draw from DRAM, also within SBUF: the side with more.
    """
    elems, item = prod(source.shape), size_bytes(source.dtype)
    descriptors = ceil(elems * item / min(run * item, device.dma_descriptor_max_bytes))
    moved = sum(elems * size_bytes(side.dtype) for side in (target, source) if isinstance(side, DramTile))
    carried = max(moved, elems * max(item, size_bytes(target.dtype)))
    far = max((_far(device, side) for side in (target, source) if isinstance(side, DramTile)), default=0)
    later = far * max(0, device.dma_far_ns - device.dma_descriptor_ns)
    by_descriptors = (descriptors * device.dma_descriptor_ns + later) / device.dma_engines
    return ceil(max(by_descriptors, carried * 1e9 / device.dram_bytes_per_second)), moved


def _far(device: Device, side: DramTile) -> int:
    """Descriptors that begin far from where the one before ends, where there are more such places than stay open."""
    item, inside, places = size_bytes(side.dtype), 1, 1
    for at, (step, count) in reversed(list(enumerate(side.dims))):
        if count > 1 and (step - inside) * item >= device.dma_far_bytes:
            places *= count
            if places > device.dma_open_places:
                return prod(count for _, count in side.dims[: at + 1])
        inside += step * (count - 1)
    return 0


def _turned_elems(device: Device, target: Tile | DramTile, source: Tile | DramTile) -> int:
    """Elements side by side of a source in DRAM that comes transposed, where the DMA does that at a rate; else 0."""
    is_wide = size_bytes(source.dtype) in (2, 4) and source.dtype == target.dtype
    if not device.dma_transpose_percent or not is_wide or not isinstance(source, DramTile):
        return 0
    return _run(sorted((dim for dim in source.dims if dim[1] > 1), reverse=True), 1)


def _run_elems(side: Tile | DramTile) -> int:
    """Elements that lie next to each other: in DRAM across dimensions, in SBUF within a partition."""
    return _run(side.dims, 1)


def _repeats(dims: Sequence[tuple[int, int]]) -> int:
    """Elements one after the other that are moved to the same position."""
    return _run(dims, 0)


def _run(dims: Sequence[tuple[int, int]], unit: int) -> int:
    run = 1
    for step, count in reversed(dims):
        if count > 1 and step != run * unit:
            break
        run *= count
    return run
