"""check_overwritten: where a kernel gives addresses itself, no tile is read after another was written on its bytes.

Waits keep the order of the calls whatever the addresses are, so two tiles at one address race no engine, but the second
destroys what the first holds. That is meant where the first is done with; where it is still read, nobody means it.
Of every byte of each group of partitions (engines' accesses begin with a group) it is known which tile was written
there last.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.hw import Device
from tvm_neuron.isa import Instruction, Tile
from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.isa.operand import TileKind
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace

_GROUP = partition_start_step(1)
_NOBODY = -1


def check_overwritten(trace: Trace, records: Sequence[Record], located: Sequence[Instruction]) -> None:
    """`located` are the instructions of `records` at their addresses.

    Raises:
        KernelError: a tile is read that another one, at the same address, was written on.
    """
    if not trace.is_placed:
        return
    last = {memory: _memory(trace.device, memory) for memory in ("sbuf", "psum")}
    numbers: dict[Place, int] = {}
    written: dict[int, str] = {}  # by number: where a tile was written last
    for record, instruction in zip(records, located, strict=True):
        for place, tile in _tiles(record, instruction, ("reads", "updates")):
            there = last[tile.space][_box(tile)]
            others = there[(there != numbers.get(place, _NOBODY)) & (there != _NOBODY)]
            if others.size:
                raise _refused(trace, place, list(numbers)[int(others[0])], tile, written[int(others[0])], record.at)
        for place, tile in _tiles(record, instruction, ("writes", "updates")):
            number = numbers.setdefault(place, len(numbers))
            last[tile.space][_box(tile)] = number
            written[number] = record.at


def _memory(device: Device, memory: str) -> NDArray[np.int32]:
    size = device.sbuf_bytes_per_partition if memory == "sbuf" else device.psum_bytes_per_partition
    return np.full((device.partitions // _GROUP, size), _NOBODY, np.int32)


def _tiles(record: Record, instruction: Instruction, roles: Sequence[str]) -> Iterator[tuple[Place, Tile]]:
    """Those on chip with one of the roles. No loops are left, so that a product is the first of its sum or not."""
    for name, kind, tile in instruction.tiles():
        is_first = isinstance(kind, TileKind) and kind.unless and getattr(instruction, kind.unless) is not None
        if isinstance(tile, Tile) and ("writes" if is_first else kind.role) in roles:
            yield record.places[name], tile


def _box(tile: Tile) -> tuple[slice, slice]:
    """The groups and bytes around what an access touches."""
    first, byte = tile.partition.base, tile.offset.base
    return slice(first // _GROUP, -(-(first + tile.partitions) // _GROUP)), slice(byte, byte + tile.extent_bytes)


def _refused(trace: Trace, place: Place, other: Place, tile: Tile, written: str, at: str) -> Exception:
    made, by = trace.tensors[place[0]].made, trace.tensors[other[0]].made
    return wrong(
        f"the tile made at {made} is read, in {tile.space.upper()} from byte {tile.offset.base} on, after the one made "
        f"at {by}, whose address is among these, was written at {written}: give them addresses apart, or read the "
        "first before the second is written",
        at,
    )
