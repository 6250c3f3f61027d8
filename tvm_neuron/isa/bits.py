"""The POOL engine's operations on bits: whole numbers as they lie in memory, never as float32.

Of int32 alone: for shifts of other dtypes the public compiler has an error code of its own, and 32 bits hold them all.
"""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import WORDS
from tvm_neuron.isa.functions import BITWISE, BITWISE_NAMES
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, need_same_shape, vector_cost
from tvm_neuron.isa.operand import choice, reads, uint, writes
from tvm_neuron.isa.tile import Tile


def _need_words(mnemonic: str, *tiles: Tile) -> None:
    dtypes = [tile.dtype for tile in tiles]
    if dtypes[0] not in WORDS or len(set(dtypes)) > 1:
        raise ProgramError(
            f"{mnemonic}: operands are {', '.join(dtypes)}; operations on bits take int32 alone, or uint32 alone: cast "
            "them before"
        )


class TensorTensorBits(Instruction, opcode=0x37, engine="pool", mnemonic="tensor_tensor_bits"):
    """result[P, *N] = left[P, *N] op right[P, *N], int32 bit by bit; a shift takes all bits from 32 places on."""

    result: Tile = writes()
    left: Tile = reads()
    right: Tile = reads()
    op: str = choice(BITWISE_NAMES)

    @property
    def takes_bits(self) -> bool:
        return True

    def check(self, device: Device) -> None:
        need_same_shape("tensor_tensor_bits", self.result, self.left, self.right)
        _need_words("tensor_tensor_bits", self.result, self.left, self.right)

    def compute(self, *sources: Array) -> Array:
        left, right = sources
        return BITWISE[self.op](left, right)

    def cost(self, device: Device) -> Cost:
        factor = 1 if self.left.space != self.right.space else 2
        tiles = (self.result, self.left, self.right)
        busy = elementwise_cycles(device, self.result.free_elems, *tiles, factor=factor)
        return vector_cost(device, busy)


class TensorScalarBits(Instruction, opcode=0x38, engine="pool", mnemonic="tensor_scalar_bits"):
    """result[P, *N] = source[P, *N] op scalar, int32 bit by bit; `scalar` is the bits of an int32."""

    result: Tile = writes()
    source: Tile = reads()
    scalar: int = uint(0, 0xFFFFFFFF)
    op: str = choice(BITWISE_NAMES)

    @property
    def takes_bits(self) -> bool:
        return True

    def check(self, device: Device) -> None:
        need_same_shape("tensor_scalar_bits", self.result, self.source)
        _need_words("tensor_scalar_bits", self.result, self.source)

    def compute(self, *sources: Array) -> Array:
        (source,) = sources
        return BITWISE[self.op](source, np.array(self.scalar, np.uint32).view(np.int32))

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source)
        return vector_cost(device, busy)
