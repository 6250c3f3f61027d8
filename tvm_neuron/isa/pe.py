"""The PE array: matrix products and transposes from SBUF into PSUM."""

from math import ceil, prod

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.contract import contract
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import FLOAT8, MATMUL_DTYPES
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.operand import first, reads, updates, writes
from tvm_neuron.isa.tile import Tile


class Matmul(Instruction, opcode=0x10, engine="pe", mnemonic="nc_matmul"):
    """psum[M, *N] = (first ? 0 : psum) + stationary[K, M].T @ moving[K, *N] in float32; K <= PE rows, M <= columns."""

    stationary: Tile = reads("sbuf")
    moving: Tile = reads("sbuf")
    psum: Tile = updates("psum", unless="first")
    first: tuple[int, ...] | None = first()

    def check(self, device: Device) -> None:
        k, m = self.stationary.shape if len(self.stationary.shape) == 2 else (0, 0)
        n = self.moving.free_elems
        if not 1 <= k <= device.pe_rows or not 1 <= m <= device.pe_columns or not 1 <= n <= device.moving_max_elems:
            raise ProgramError(
                f"nc_matmul: stationary is {list(self.stationary.shape)}, moving has {n} columns; {device.name} "
                f"takes [K <= {device.pe_rows}, M <= {device.pe_columns}] "
                f"and N <= {device.moving_max_elems}: use smaller tiles"
            )
        if self.moving.partitions != k or self.psum.shape != (m, *self.moving.shape[1:]):
            raise ProgramError(
                f"nc_matmul: stationary {list(self.stationary.shape)}, moving {list(self.moving.shape)} and psum "
                f"{list(self.psum.shape)} must be [K, M], [K, *N] and [M, *N]"
            )
        pair = (self.stationary.dtype, self.moving.dtype)
        if "float32" in pair and pair != ("float32", "float32"):
            raise ProgramError(f"nc_matmul: {pair[0]} x {pair[1]}; float32 is multiplied by float32: cast one operand")
        allowed = MATMUL_DTYPES
        allowed += (*(("float32",) if device.fp32_matmul_passes else ()), *(FLOAT8 if device.fp8_matmul_rows else ()))
        if self.stationary.dtype not in allowed or self.moving.dtype not in allowed or self.psum.dtype != "float32":
            raise ProgramError(
                f"nc_matmul: {self.stationary.dtype} x {self.moving.dtype} -> {self.psum.dtype}; {device.name} "
                f"multiplies {', '.join(allowed)} and accumulates float32: cast the operands"
            )

    def compute(self, *sources: Array) -> Array:
        stationary, moving = sources
        return contract(stationary, moving, ())

    def accumulate(self, old: Array | None, summed: tuple[int, ...], *sources: Array) -> Array:
        stationary, moving = sources
        return contract(stationary, moving, summed, old)

    def cost(self, device: Device) -> Cost:
        k, m, n = self.stationary.partitions, self.stationary.free_elems, self.moving.free_elems
        busy = max(min(device.matmul_min_cycles, m), n)
        if self.moving.dtype == "float32":  # each pass has another stationary tile, which comes when the last is done
            busy = (busy + ceil(m / device.stationary_columns_per_cycle)) * device.fp32_matmul_passes
        return Cost(busy, device.instruction_latency_cycles, macs=k * m * n)


class MatmulPairs(Instruction, opcode=0x12, engine="pe", mnemonic="nc_matmul_pairs"):
    """psum[M, *N] = (first ? 0 : psum) + stationary[K, 2, M] @ moving[K, 2, *N], summed over K and 2; of 8-bit floats.

    A row of the array holds two of them at a time, so that it takes as long as one of the two products.
    """

    stationary: Tile = reads("sbuf")
    moving: Tile = reads("sbuf")
    psum: Tile = updates("psum", unless="first")
    first: tuple[int, ...] | None = first()

    def check(self, device: Device) -> None:
        left, right = self.stationary.shape, self.moving.shape
        if device.fp8_matmul_rows < 2:
            raise ProgramError(f"nc_matmul_pairs: {device.name} multiplies no two 8-bit floats at a time; trn2 does")
        if {self.stationary.dtype, self.moving.dtype} - set(FLOAT8) or self.psum.dtype != "float32":
            raise ProgramError(
                f"nc_matmul_pairs: {self.stationary.dtype} x {self.moving.dtype} -> {self.psum.dtype}; it multiplies "
                f"{', '.join(FLOAT8)} and accumulates float32: cast the operands, or use nc_matmul"
            )
        if len(left) != 3 or left[:2] != right[:2] or left[1] != 2 or self.psum.shape != (left[2], *right[2:]):
            raise ProgramError(
                f"nc_matmul_pairs: stationary {list(left)}, moving {list(right)} and psum {list(self.psum.shape)} "
                "must be [K, 2, M], [K, 2, *N] and [M, *N]"
            )
        k, m, n = left[0], left[2], prod(right[2:])
        if k > device.pe_rows or m > device.pe_columns or n > device.moving_max_elems:
            raise ProgramError(
                f"nc_matmul_pairs: K = {k}, M = {m}, N = {n}; {device.name} takes K <= {device.pe_rows}, M <= "
                f"{device.pe_columns} and N <= {device.moving_max_elems}: use smaller tiles"
            )

    def compute(self, *sources: Array) -> Array:
        return self.accumulate(None, (), *sources)

    def accumulate(self, old: Array | None, summed: tuple[int, ...], *sources: Array) -> Array:
        stationary, moving = map(_joined, sources, (2, len(self.moving.shape) - 1))
        return contract(stationary, moving, summed, old)

    def cost(self, device: Device) -> Cost:
        k, m, n = self.stationary.partitions, self.stationary.shape[2], prod(self.moving.shape[2:])
        return Cost(max(min(device.matmul_min_cycles, m), n), device.instruction_latency_cycles, macs=2 * k * m * n)


def _joined(operand: Array, free: int) -> Array:
    """[*loops, 2 K, ...] of [*loops, K, 2, ...], whose last axes are `free` and these two."""
    loops = operand.ndim - free - 1
    return operand.reshape(*operand.shape[:loops], -1, *operand.shape[loops + 2 :])


class Transpose(Instruction, opcode=0x11, engine="pe", mnemonic="nc_transpose"):
    """psum[F, P] = source[P, F].T, the very values; P <= PE rows, F <= PE columns; float32 takes several passes."""

    psum: Tile = writes("psum")
    source: Tile = reads("sbuf")

    def check(self, device: Device) -> None:
        p, f = self.source.partitions, self.source.free_elems
        if p > device.pe_rows or f > device.pe_columns or self.psum.partitions != f or self.psum.free_elems != p:
            raise ProgramError(
                f"nc_transpose: source {list(self.source.shape)} to psum {list(self.psum.shape)}; {device.name} takes "
                f"[P <= {device.pe_rows}, F <= {device.pe_columns}] to [F, P]: use smaller tiles"
            )

    def compute(self, *sources: Array) -> Array:
        (source,) = sources
        flat = source.reshape(*source.shape[: source.ndim - len(self.source.shape)], self.source.partitions, -1)
        swapped = np.swapaxes(flat, -1, -2)
        return swapped.reshape(*swapped.shape[:-1], *self.psum.shape[1:])

    def cost(self, device: Device) -> Cost:
        p, f = self.source.partitions, prod(count for _, count in self.source.dims)
        passes = device.fp32_transpose_passes if self.source.dtype == "float32" else 1
        return Cost(max(p, min(device.matmul_min_cycles, f)) * passes, device.instruction_latency_cycles)
