"""The POOL engine's scan: a recurrence along the free axis."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.functions import ALU, ALU_NAMES
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, need_same_shape, vector_cost
from tvm_neuron.isa.operand import choice, reads, scalar, uint, writes
from tvm_neuron.isa.tile import Tile


class TensorTensorScan(Instruction, opcode=0x3A, engine="pool", mnemonic="tensor_tensor_scan"):
    """result[P, i] = (left[P, i] op0 result[P, i-1]) op1 right[P, i], result[P, -1] = initial; in float32 throughout.

    Free axes count as one, the innermost last; `reverse` bit i swaps the operands of op i.
    """

    result: Tile = writes()
    left: Tile = reads()
    right: Tile = reads()
    initial: float | Tile = scalar()
    op0: str = choice(ALU_NAMES)
    op1: str = choice(ALU_NAMES)
    reverse: int = uint(0, 3)

    def check(self, device: Device) -> None:
        need_same_shape("tensor_tensor_scan", self.result, self.left, self.right)
        if self.left.space == self.right.space == "psum":
            raise ProgramError("tensor_tensor_scan: both sources lie in PSUM; one of them must be in SBUF")

    def compute(self, *sources: Array) -> Array:
        left, right, initial = sources
        axes = len(self.result.dims)
        lead = np.broadcast_shapes(*(np.shape(each)[: np.ndim(each) - axes] for each in (left, right)))
        flat = [np.broadcast_to(each, (*lead, *self.result.shape[1:])).reshape(*lead, -1) for each in (left, right)]
        ends = np.shape(initial)
        state = np.broadcast_to(np.reshape(initial, ends[: len(ends) - axes]), lead)
        found = np.empty((*lead, flat[0].shape[-1]), np.float32)
        for at in range(found.shape[-1]):
            inner = (state, flat[0][..., at]) if self.reverse & 1 else (flat[0][..., at], state)
            outer = (flat[1][..., at], ALU[self.op0](*inner))
            state = ALU[self.op1](*outer) if self.reverse & 2 else ALU[self.op1](*outer[::-1])
            found[..., at] = state
        return found.reshape(*lead, *self.result.shape[1:])

    def cost(self, device: Device) -> Cost:
        tiles = (self.result, self.left, self.right)
        busy = elementwise_cycles(device, self.result.free_elems, *tiles, factor=2)
        return vector_cost(device, busy)
