"""The ACT (scalar) engine: a function of each element, scaled and shifted on the way in; arithmetic with scalars."""

from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.functions import ACTIVATION, ACTIVATION_NAMES, ALU_NAMES, reduced, scaled, with_scalars
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, need_column, need_same_shape, vector_cost
from tvm_neuron.isa.operand import choice, reads, scalar, uint, writes
from tvm_neuron.isa.tile import Tile


class Activation(Instruction, opcode=0x20, engine="act", mnemonic="activation"):
    """result[P, *N] = function(source[P, *N] * scale + bias), scale and bias a number or one for each partition."""

    result: Tile = writes()
    source: Tile = reads()
    scale: float | Tile = scalar()
    bias: float | Tile = scalar()
    function: str = choice(ACTIVATION_NAMES)

    def check(self, device: Device) -> None:
        need_same_shape("activation", self.result, self.source)

    def compute(self, *sources: Array) -> Array:
        source, scale, bias = sources
        return ACTIVATION[self.function](scaled(source, scale, bias))

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.source, self.result)
        return vector_cost(device, busy)


class ActivationReduce(Instruction, opcode=0x22, engine="act", mnemonic="activation_reduce"):
    """result[P, *N] = function(source[P, *N] * scale + bias); total[P, 1] = its sum in float32 before it is rounded."""

    result: Tile = writes()
    total: Tile = writes()
    source: Tile = reads()
    scale: float | Tile = scalar()
    bias: float | Tile = scalar()
    function: str = choice(ACTIVATION_NAMES)

    def check(self, device: Device) -> None:
        need_same_shape("activation_reduce", self.result, self.source)
        need_column("activation_reduce", self.total, self.result)

    def compute(self, *sources: Array) -> Array:
        source, scale, bias = sources
        return ACTIVATION[self.function](scaled(source, scale, bias))

    def compute_for(self, operand: str, *sources: Array) -> Array:
        result = self.compute(*sources)
        return reduced("add", result, len(self.result.dims))[..., None] if operand == "total" else result

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.source, self.result)
        return vector_cost(device, busy + device.reduce_extra_cycles)


class ActTensorScalar(Instruction, opcode=0x21, engine="act", mnemonic="act_tensor_scalar"):
    """result[P, *N] = (source[P, *N] op0 scalar0) op1 scalar1; as tensor_scalar, which POOL takes."""

    result: Tile = writes()
    source: Tile = reads()
    scalar0: float | Tile = scalar()
    scalar1: float | Tile = scalar()
    op0: str = choice(ALU_NAMES)
    op1: str = choice(("bypass", *ALU_NAMES))
    reverse: int = uint(0, 3)

    def check(self, device: Device) -> None:
        need_same_shape("act_tensor_scalar", self.result, self.source)

    def compute(self, *sources: Array) -> Array:
        source, scalar0, scalar1 = sources
        return with_scalars(source, (scalar0, scalar1), (self.op0, self.op1), self.reverse)

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.result.free_elems, self.result, self.source)
        return vector_cost(device, busy)
