"""DMA: moves any strided pattern between DRAM and SBUF, converting the dtype on the way."""

from math import ceil, prod

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import size_bytes
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
        sides = (self.target, self.source)
        elems = prod(self.source.shape)
        run = min(_run_elems(side) for side in sides)
        run_bytes = min(run * size_bytes(self.source.dtype), device.dma_descriptor_max_bytes)
        descriptors = ceil(elems * size_bytes(self.source.dtype) / run_bytes)
        moved = sum(elems * size_bytes(side.dtype) for side in sides if isinstance(side, DramTile))
        by_descriptors = descriptors * device.dma_descriptor_ns / device.dma_engines
        by_bytes = max(moved, elems) * 1e9 / device.dram_bytes_per_second
        return Cost(ceil(max(by_descriptors, by_bytes)), device.dma_start_ns, dram_bytes=moved)


def _run_elems(side: Tile | DramTile) -> int:
    """Elements that lie next to each other: in DRAM across dimensions, in SBUF within a partition."""
    if isinstance(side, DramTile):
        return side.contiguous_elems
    run = 1
    for step, count in reversed(side.dims):
        if count > 1 and step != run:
            break
        run *= count
    return run
