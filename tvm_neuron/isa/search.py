"""The POOL engine's searches along the free axes, for eight values of each partition at once."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import DTYPES, WORDS
from tvm_neuron.isa.instruction import Array, Instruction
from tvm_neuron.isa.limits import elementwise_cycles, is_strided, need_same_shape, vector_cost
from tvm_neuron.isa.operand import reads, scalar, writes
from tvm_neuron.isa.tile import Tile

_VALUES = 8
_MOST = 16384
_PLACES = (*WORDS, "uint16")


def _check_eight(mnemonic: str, source: Tile, **eight: Tile) -> None:
    for name, tile in eight.items():
        if tile.shape != (source.partitions, _VALUES):
            raise ProgramError(f"{mnemonic}: {name} is {list(tile.shape)}; it must be [{source.partitions}, {_VALUES}]")
    if source.free_elems > _MOST:
        raise ProgramError(
            f"{mnemonic}: {source.free_elems} elements of each partition; at most {_MOST} are searched: take parts"
        )


def _check_places(mnemonic: str, indices: Tile) -> None:
    if indices.dtype not in _PLACES:
        raise ProgramError(
            f"{mnemonic}: indices become {indices.dtype}; they must be {', '.join(_PLACES)}: cast them afterwards"
        )


def _flat(source: Array, tile: Tile) -> Array:
    return source.reshape(*source.shape[: source.ndim - len(tile.dims)], -1)


def _searched(device: Device, source: Tile) -> Cost:
    cycles = source.free_elems * (2 if is_strided(device, source) else 1)
    return vector_cost(device, cycles)


class Max8(Instruction, opcode=0x60, engine="pool", mnemonic="max8"):
    """result[P, 8] = the eight largest of source[P, *N], in descending order."""

    result: Tile = writes()
    source: Tile = reads()

    def check(self, device: Device) -> None:
        _check_eight("max8", self.source, result=self.result)
        if self.source.free_elems < _VALUES:
            raise ProgramError(
                f"max8: {self.source.free_elems} elements of each partition; at least 8 are needed: fill it up"
            )

    def compute(self, *sources: Array) -> Array:
        return np.sort(_flat(sources[0], self.source), -1)[..., : -_VALUES - 1 : -1]

    def cost(self, device: Device) -> Cost:
        return _searched(device, self.source)


class FindIndex8(Instruction, opcode=0x61, engine="pool", mnemonic="find_index8"):
    """result[P, 8] = where each of values[P, 8] is first in source[P, *N], over the free axes; else all ones."""

    result: Tile = writes()
    source: Tile = reads()
    values: Tile = reads()

    def check(self, device: Device) -> None:
        _check_eight("find_index8", self.source, result=self.result, values=self.values)
        _check_places("find_index8", self.result)

    def compute(self, *sources: Array) -> Array:
        source, values = _flat(sources[0], self.source), sources[1]
        is_there = source[..., None, :] == values[..., :, None]
        return np.where(is_there.any(-1), is_there.argmax(-1), -1).astype(DTYPES[self.result.dtype])

    def cost(self, device: Device) -> Cost:
        return _searched(device, self.source)


class MatchReplace8(Instruction, opcode=0x62, engine="pool", mnemonic="match_replace8"):
    """result[P, *N] = source[P, *N] with each of values[P, 8] replaced where it is first; indices[P, 8] = these places.

    Equal values take one place after the other, the last of them first; a place is all ones where none is left.
    """

    result: Tile = writes()
    indices: Tile = writes()
    source: Tile = reads()
    values: Tile = reads()
    replacement: float | Tile = scalar()

    def check(self, device: Device) -> None:
        need_same_shape("match_replace8", self.result, self.source)
        _check_eight("match_replace8", self.source, indices=self.indices, values=self.values)
        _check_places("match_replace8", self.indices)

    def compute(self, *sources: Array) -> Array:
        return self.compute_for("result", *sources)

    def compute_for(self, operand: str, *sources: Array) -> Array:
        source, values, replacement = sources
        flat = _flat(source, self.source)
        lead = np.broadcast_shapes(flat.shape[:-1], values.shape[:-1])
        flat = np.broadcast_to(flat, (*lead, flat.shape[-1])).copy()
        free = np.ones(flat.shape, np.bool_)
        places = np.empty((*lead, _VALUES), np.int32)
        for slot in reversed(range(_VALUES)):
            found = free & (flat == np.broadcast_to(values, (*lead, _VALUES))[..., slot, None])
            places[..., slot] = np.where(found.any(-1), found.argmax(-1), -1)
            here = np.arange(flat.shape[-1]) == places[..., slot, None]
            free &= ~here
        if operand == "indices":
            return places.astype(DTYPES[self.indices.dtype])
        shape = (*lead, *self.result.shape[1:])
        return np.where(free.reshape(shape), flat.reshape(shape), replacement)

    def cost(self, device: Device) -> Cost:
        busy = elementwise_cycles(device, self.source.free_elems, self.source, self.result)
        return vector_cost(device, busy)
