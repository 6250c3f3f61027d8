"""The POOL engine's choices that also say the largest of what they choose, and its moves between partitions."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.functions import COMPARISONS, TESTS, reduced
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, need_column, need_same_shape, vector_cost
from tvm_neuron.isa.operand import choice, ints, reads, scalar, writes
from tvm_neuron.isa.tile import Tile

QUADRANT = 32  # partitions among which values move
_RANGES_FROM = 3  # the generation of cores that selects by ranges


class SelectReduce(Instruction, opcode=0x63, engine="pool", mnemonic="select_reduce"):
    """result[P, *N] = on_true where predicate[P, *N] != 0, else on_false; total[P, 1] = the largest in float32."""

    result: Tile = writes()
    total: Tile = writes()
    predicate: Tile = reads()
    on_true: Tile = reads()
    on_false: float | Tile = scalar()

    def check(self, device: Device) -> None:
        need_same_shape("select_reduce", self.result, self.predicate, self.on_true)
        need_column("select_reduce", self.total, self.result)

    def compute(self, *sources: Array) -> Array:
        predicate, on_true, on_false = sources
        return np.where(predicate != 0, on_true, on_false)

    def compute_for(self, operand: str, *sources: Array) -> Array:
        result = self.compute(*sources)
        return reduced("max", result, len(self.result.dims))[..., None] if operand == "total" else result

    def cost(self, device: Device) -> Cost:
        factor = 1 if self.on_true.space != self.predicate.space else 2  # as `select`: its own is not published
        tiles = (self.result, self.predicate, self.on_true)
        busy = elementwise_cycles(device, self.result.free_elems, *tiles, factor=factor)
        return vector_cost(device, busy + device.reduce_extra_cycles)


class RangeSelect(Instruction, opcode=0x64, engine="pool", mnemonic="range_select"):
    """result[P, *N] = source[P, *N] where start + i, i counted over the free axes, passes both tests, else `other`.

    `test0` against bound0[P, 1] and `test1` against bound1[P, 1]; total[P, 1] = the largest of the result in float32.
    """

    result: Tile = writes()
    total: Tile = writes()
    source: Tile = reads()
    bound0: float | Tile = scalar()
    bound1: float | Tile = scalar()
    start: float | Tile = scalar()
    other: float | Tile = scalar()
    test0: str = choice(COMPARISONS)
    test1: str = choice(COMPARISONS)

    def check(self, device: Device) -> None:
        if device.core_generation < _RANGES_FROM:
            raise ProgramError(
                f"range_select: {device.name} has NeuronCore-v{device.core_generation}; it is of v{_RANGES_FROM} and "
                "later: use affine_select, or select with a predicate"
            )
        need_same_shape("range_select", self.result, self.source)
        need_column("range_select", self.total, self.result)

    def compute(self, *sources: Array) -> Array:
        source, bound0, bound1, start, other = sources
        place = np.arange(self.result.free_elems, dtype=np.float32).reshape(self.result.shape[1:]) + start
        is_in = (TESTS[self.test0](place, bound0) != 0) & (TESTS[self.test1](place, bound1) != 0)
        return np.where(is_in, source, other)

    def compute_for(self, operand: str, *sources: Array) -> Array:
        result = self.compute(*sources)
        return reduced("max", result, len(self.result.dims))[..., None] if operand == "total" else result

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source)
        return vector_cost(device, busy)


class StreamShuffle(Instruction, opcode=0x65, engine="pool", mnemonic="stream_shuffle"):
    """result[32 * q + i, *N] = source[32 * q + order[i], *N] for each 32 partitions; bit for bit."""

    result: Tile = writes()
    source: Tile = reads()
    order: tuple[int, ...] = ints(QUADRANT)

    @property
    def takes_bits(self) -> bool:
        """They are copies."""
        return True

    def check(self, device: Device) -> None:
        rows = self.result.partitions
        # Of a single group, the source needs those partitions alone from which something comes.
        if rows > QUADRANT or self.result.shape[1:] != self.source.shape[1:]:
            need_same_shape("stream_shuffle", self.result, self.source)
        last = rows % QUADRANT or QUADRANT  # of the last group
        least = min(last, self.source.partitions)
        if self.result.dtype != self.source.dtype:
            raise ProgramError(f"stream_shuffle: from {self.source.dtype} to {self.result.dtype}; it converts nothing")
        if len(self.order) != QUADRANT or not all(0 <= row < least for row in self.order[:last]):
            raise ProgramError(
                f"stream_shuffle: the order {list(self.order)}; it takes {QUADRANT} numbers, each of a partition from "
                f"0 to {least - 1} of its group"
            )

    def compute(self, *sources: Array) -> Array:
        rows = np.arange(self.result.partitions)
        axis = sources[0].ndim - len(self.source.shape)
        moved: Array = np.take(sources[0], rows // QUADRANT * QUADRANT + np.array(self.order)[rows % QUADRANT], axis)
        return moved

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source)
        return vector_cost(device, busy)


class PoolTranspose(Instruction, opcode=0x66, engine="pool", mnemonic="pool_transpose"):
    """result[F, P] = source[P, F].T; P and F at most 32; bit for bit."""

    result: Tile = writes()
    source: Tile = reads()

    @property
    def takes_bits(self) -> bool:
        """They are copies."""
        return True

    def check(self, device: Device) -> None:
        p, f = self.source.partitions, self.source.free_elems
        if max(p, f) > QUADRANT or (self.result.partitions, self.result.free_elems) != (f, p):
            raise ProgramError(
                f"pool_transpose: {list(self.source.shape)} to {list(self.result.shape)}; it takes [P, F] to [F, P], "
                f"both at most {QUADRANT}"
            )
        if self.result.dtype != self.source.dtype:
            raise ProgramError(f"pool_transpose: from {self.source.dtype} to {self.result.dtype}; it converts nothing")

    def compute(self, *sources: Array) -> Array:
        (source,) = sources
        flat = source.reshape(*source.shape[: source.ndim - len(self.source.shape)], self.source.partitions, -1)
        swapped = np.swapaxes(flat, -1, -2)
        return swapped.reshape(*swapped.shape[:-1], *self.result.shape[1:])

    def cost(self, device: Device) -> Cost:
        return vector_cost(device, elementwise_cycles(device, self.source.free_elems, self.result, self.source))
