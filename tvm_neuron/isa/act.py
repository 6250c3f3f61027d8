"""The ACT (scalar) engine: a function of each element, scaled and shifted on the way in."""

from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.functions import ACTIVATION, ACTIVATION_NAMES, scaled
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, need_same_shape
from tvm_neuron.isa.operand import choice, reads, scalar, writes
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
        return Cost(busy, device.instruction_latency_cycles)
