"""Inputs that a kernel writes to and returns: the program has an input and an output for each of them.

What the kernel does not write stays as it was, so the output begins as a copy of the input, unless all of it is
written before any of it is read.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tvm_neuron.isa import DmaCopy, DramTile, affine
from tvm_neuron.nki.emission import Record
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace
from tvm_neuron.nki.view import Tensor


def set_apart(trace: Trace, outputs: set[int]) -> dict[int, int]:
    """Makes an input of its own for each tensor that is an input and an output; by its number that of the other.

    Raises:
        KernelError: a kernel writes to an input that it does not return.
    """
    found: dict[int, int] = {}
    records = trace.records
    places = {number: record.at for record in records for number in _touched(record, ("writes", "updates"))}
    for number, at in places.items():
        tensor = trace.tensors[number]
        if tensor.kind != "input":
            continue
        if number not in outputs:
            raise wrong(f"the kernel writes to its input {tensor.name}, but does not return it: return it as well", at)
        given = trace.tensor(trace.shapes[number], tensor.dtype, "hbm", tensor.name, kind="input").tensor
        tensor.kind, tensor.name = "scratch", f"{tensor.name}.out"
        found[given.number] = number
        if not _is_all_written(tensor, records):
            trace.groups.insert(0, [Record(DmaCopy(_all_of(tensor), _all_of(given), 0), {}, at)])
    return found


def _touched(record: Record, roles: tuple[str, ...]) -> list[int]:
    tiles = record.instruction.tiles()
    return [tile.tensor for _, kind, tile in tiles if isinstance(tile, DramTile) and kind.role in roles]


def _is_all_written(tensor: Tensor, records: list[Record]) -> bool:
    """Whether every element is written before one is read."""
    is_written = np.zeros(tensor.elems, np.bool_)
    for record in records:
        if tensor.number in _touched(record, ("reads",)) and not is_written.all():
            return False
        for _, kind, tile in record.instruction.tiles():
            if isinstance(tile, DramTile) and tile.tensor == tensor.number and kind.role != "reads":
                shape, strides = [count for _, count in tile.dims], [step for step, _ in tile.dims]
                as_strided(is_written[tile.offset.base :], shape, strides)[...] = True
    return bool(is_written.all())


def _all_of(tensor: Tensor) -> DramTile:
    return DramTile(tensor.number, tensor.dtype, affine(0), ((1, tensor.elems),))
