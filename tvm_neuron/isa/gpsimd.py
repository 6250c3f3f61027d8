"""The GpSimd engine: whole numbers of 32 bits, fills, what depends on places, gathers; it has SBUF alone."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import DTYPES, WORDS, size_bytes
from tvm_neuron.isa.functions import ALU, ALU_NAMES, COMPARISONS, TESTS, WHOLE
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import need_same_shape
from tvm_neuron.isa.operand import choice, ints, reads, scalar, uint, writes
from tvm_neuron.isa.pool import Memset
from tvm_neuron.isa.tile import MAX_FREE_DIMS, Tile

CORES_PARTITIONS = 16  # of each of the engine's cores
_MOST_INDICES = 4096
_MOST_ELEMS = 32


def _pattern(tile: Tile, pattern: tuple[int, ...]) -> Array:
    """pattern[0] + pattern[1] * partition + the sum of the further steps by the free indices, for each element."""
    first, *steps = pattern
    found = np.full(tile.shape, first, np.int64)
    for axis, (step, count) in enumerate(zip(steps, tile.shape, strict=True)):
        found += (step * np.arange(count)).reshape([-1 if at == axis else 1 for at in range(len(tile.shape))])
    return found


def _check_pattern(mnemonic: str, tile: Tile, pattern: tuple[int, ...]) -> None:
    if len(pattern) != 1 + len(tile.shape):
        raise ProgramError(
            f"{mnemonic}: the pattern {list(pattern)} is for {max(0, len(pattern) - 1)} axes; a start and a step for "
            f"each of the {len(tile.shape)} of {list(tile.shape)} are needed"
        )


class Iota(Instruction, opcode=0x50, engine="gpsimd", mnemonic="iota"):
    """result[P, *N] = pattern[0] + pattern[1] * p + pattern[2:] by the free indices, whole numbers."""

    result: Tile = writes("sbuf")
    pattern: tuple[int, ...] = ints(2 + MAX_FREE_DIMS)

    def check(self, device: Device) -> None:
        _check_pattern("iota", self.result, self.pattern)

    def compute(self, *sources: Array) -> Array:
        exact = DTYPES[self.result.dtype] if self.result.dtype in WORDS else np.float32
        return _pattern(self.result, self.pattern).astype(exact)

    def cost(self, device: Device) -> Cost:
        return Cost(device.gpsimd_start_cycles + self.result.free_elems, device.instruction_latency_cycles)


class GpsimdMemset(Memset, opcode=0x53, engine="gpsimd", mnemonic="gpsimd_memset"):
    """result[P, *N] = value, while Vector computes."""

    result: Tile = writes("sbuf")
    value: float | Tile = scalar()

    def compute(self, *sources: Array) -> Array:
        return super().compute(*sources)

    def cost(self, device: Device) -> Cost:
        return Cost(device.gpsimd_start_cycles + self.result.free_elems, device.instruction_latency_cycles)


class GpsimdTensorTensor(Instruction, opcode=0x54, engine="gpsimd", mnemonic="gpsimd_tensor_tensor"):
    """result[P, *N] = left[P, *N] op right[P, *N]; sums and products of int32 and uint32 are exact, modulo 2^32."""

    result: Tile = writes("sbuf")
    left: Tile = reads("sbuf")
    right: Tile = reads("sbuf")
    op: str = choice(ALU_NAMES)

    @property
    def takes_bits(self) -> bool:
        """Where all is of 32 bits: those of a sum don't depend on signs (public NKI documentation: exact int32)."""
        return self.op in WHOLE and all(tile.dtype in WORDS for tile in (self.result, self.left, self.right))

    def check(self, device: Device) -> None:
        need_same_shape("gpsimd_tensor_tensor", self.result, self.left, self.right)

    def compute(self, *sources: Array) -> Array:
        left, right = sources
        if self.takes_bits:
            return ALU[self.op](left.view(np.uint32), right.view(np.uint32)).view(DTYPES[self.result.dtype])
        return ALU[self.op](left, right)

    def cost(self, device: Device) -> Cost:
        # Not published: the start of this engine's other instructions, and two sources from one memory as on Vector.
        return Cost(device.gpsimd_start_cycles + 2 * self.result.free_elems, device.instruction_latency_cycles)


class AffineSelect(Instruction, opcode=0x51, engine="gpsimd", mnemonic="affine_select"):
    """result[P, *N] = source[P, *N] where the pattern, as of `iota`, compares to 0 as `test` says, else `other`."""

    result: Tile = writes("sbuf")
    source: Tile = reads("sbuf")
    other: float | Tile = scalar()
    pattern: tuple[int, ...] = ints(2 + MAX_FREE_DIMS)
    test: str = choice(COMPARISONS)

    def check(self, device: Device) -> None:
        need_same_shape("affine_select", self.result, self.source)
        _check_pattern("affine_select", self.result, self.pattern)

    def compute(self, *sources: Array) -> Array:
        source, other = sources
        return np.where(TESTS[self.test](_pattern(self.result, self.pattern), 0), source, other)

    def cost(self, device: Device) -> Cost:
        return Cost(device.gpsimd_start_cycles + self.result.free_elems, device.instruction_latency_cycles)


class LocalGather(Instruction, opcode=0x52, engine="gpsimd", mnemonic="local_gather"):
    """result[p, k, E] = source[p, index_k, E]: each core's 16 partitions have one list of indices, p first.

    Index k of the list is indices[k % 16, k // 16] of these partitions.
    """

    result: Tile = writes("sbuf")
    source: Tile = reads("sbuf")
    indices: Tile = reads("sbuf")
    elems: int = uint(1, _MOST_ELEMS)  # for each index, side by side

    def check(self, device: Device) -> None:
        rows, columns = self.indices.shape[0], self.indices.free_elems
        if self.indices.dtype not in (*WORDS, "int16", "uint16"):
            raise ProgramError(f"local_gather: indices are {self.indices.dtype}; they must be whole, of 16 or 32 bits")
        if not rows == self.source.partitions == self.result.partitions or self.source.free_elems % self.elems:
            raise ProgramError(
                f"local_gather: indices {list(self.indices.shape)}, from {list(self.source.shape)} to "
                f"{list(self.result.shape)}; all have the same partitions, the source whole groups of {self.elems}"
            )
        count = self.result.free_elems // self.elems
        most = min(_MOST_INDICES, min(rows % CORES_PARTITIONS or CORES_PARTITIONS, rows) * columns)
        if self.result.free_elems % self.elems or count > most:
            raise ProgramError(
                f"local_gather: {self.result.free_elems} elements of each partition, {self.elems} for an index; "
                f"{list(self.indices.shape)} gives at most {most} indices"
            )

    def compute(self, *sources: Array) -> Array:
        source, indices = (
            np.reshape(each, (*each.shape[: each.ndim - len(tile.dims)], -1))
            for each, tile in zip(sources, (self.source, self.indices), strict=True)
        )
        groups = source.reshape(*source.shape[:-1], -1, self.elems)
        count = self.result.free_elems // self.elems
        lead = np.broadcast_shapes(source.shape[:-2], indices.shape[:-2])
        found = np.empty((*lead, source.shape[-2], count, self.elems), np.float32)
        for first in range(0, source.shape[-2], CORES_PARTITIONS):
            rows = slice(first, first + CORES_PARTITIONS)
            listed = np.swapaxes(indices[..., rows, :], -1, -2)
            chosen = listed.reshape(*listed.shape[:-2], -1)[..., :count].astype(np.int64)
            if chosen.size and (chosen.min() < 0 or chosen.max() >= groups.shape[-2]):
                raise ProgramError(
                    f"local_gather: index {chosen.min() if chosen.min() < 0 else chosen.max()} lies outside of the "
                    f"{groups.shape[-2]} groups of {self.elems} that it chooses from"
                )
            found[..., rows, :, :] = np.take_along_axis(groups[..., rows, :, :], chosen[..., None, :, None], -2)
        return found.reshape(*lead, *self.result.shape)

    def cost(self, device: Device) -> Cost:
        # Published: 150 + indices * e / C, C = ((28 + 4e) / 4e) / min(4 / bytes, e)
        item, e = size_bytes(self.result.dtype), self.elems
        cycles = -(-self.result.free_elems * 4 * e * min(4, e * item) // (item * (28 + 4 * e)))
        return Cost(device.gpsimd_start_cycles + cycles, device.instruction_latency_cycles)
