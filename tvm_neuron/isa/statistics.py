"""The POOL engine's statistics of rows: mean and variance in one pass, and those of parts put together."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, vector_cost
from tvm_neuron.isa.operand import reads, writes
from tvm_neuron.isa.tile import Tile

_COUNTED = 3  # numbers that tell of some elements: how many, their mean, their variance times how many


class BnStats(Instruction, opcode=0x3C, engine="pool", mnemonic="bn_stats"):
    """result[P, 6] = count, mean and variance * count of source[P, *N]'s even elements, then of its odd ones."""

    result: Tile = writes()
    source: Tile = reads()

    def check(self, device: Device) -> None:
        elems, most = self.source.free_elems, device.moving_max_elems
        if self.result.shape != (self.source.partitions, 2 * _COUNTED) or elems > most:
            raise ProgramError(
                f"bn_stats: from {list(self.source.shape)} to {list(self.result.shape)}; it takes at most {most} "
                f"elements to [{self.source.partitions}, {2 * _COUNTED}]: take parts, and bn_aggr of all of them"
            )

    def compute(self, *sources: Array) -> Array:
        source = sources[0].reshape(*sources[0].shape[: sources[0].ndim - len(self.source.dims)], -1)
        found = []
        for part in (source[..., ::2], source[..., 1::2]):
            count = part.shape[-1]
            mean = part.mean(-1) if count else np.zeros(part.shape[:-1], np.float32)
            found += [np.full_like(mean, count), mean, np.square(part - mean[..., None]).sum(-1)]
        return np.stack(found, -1)

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.source.free_elems, self.source)
        return vector_cost(device, busy)


class BnAggr(Instruction, opcode=0x3D, engine="pool", mnemonic="bn_aggr"):
    """result[P, 2] = mean and variance of what source[P, 3 * K] tells by K of (count, mean, variance * count)."""

    result: Tile = writes()
    source: Tile = reads()

    def check(self, device: Device) -> None:
        if self.result.shape != (self.source.partitions, 2) or self.source.free_elems % _COUNTED:
            raise ProgramError(
                f"bn_aggr: from {list(self.source.shape)} to {list(self.result.shape)}; it takes threes of numbers to "
                f"[{self.source.partitions}, 2]"
            )

    def compute(self, *sources: Array) -> Array:
        lead = sources[0].shape[: sources[0].ndim - len(self.source.dims)]
        count, mean, spread = np.moveaxis(sources[0].reshape(*lead, -1, _COUNTED), -1, 0)
        total = count.sum(-1)
        middle = (count * mean).sum(-1) / total
        apart = count * np.square(mean - middle[..., None])
        return np.stack([middle, (spread + apart).sum(-1) / total], -1)

    def cost(self, device: Device) -> Cost:
        cycles = -(-13 * self.source.free_elems // 3)
        return vector_cost(device, max(device.elementwise_min_cycles, cycles))
