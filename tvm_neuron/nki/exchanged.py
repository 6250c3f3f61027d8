"""exchanged: what a core reads or writes although another writes it. Cores of a launch don't wait for each other."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tvm_neuron.isa import DramTile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.operand import TileKind
from tvm_neuron.nki.emission import Record
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace

Array = NDArray[Any]


def check_exchanged(trace: Trace, cores: Sequence[int]) -> None:
    """`cores` says of each group of the trace on which core it runs.

    Raises:
        KernelError: a core reads from device memory what only others write, or two write to one place.
    """
    writers: dict[int, Array] = {}  # by tensor: of each element the cores that write it, a bit each
    places: dict[tuple[int, int], str] = {}  # by tensor and core: where in the kernel it is written first
    for record, core, tile in _accesses(trace, cores, ("writes", "updates")):
        if tile.tensor not in writers:
            writers[tile.tensor] = np.zeros(trace.tensors[tile.tensor].elems, np.uint8)
        found = _elements(trace, writers[tile.tensor], tile)
        others = found[found & np.uint8(~(1 << core) & 0xFF) != 0]
        if others.size:
            other = int(others[0]).bit_length() - 1
            raise wrong(
                f"core {core} writes {others.size} elements of {_named(trace, tile)} that core {other} writes at "
                f"{places[tile.tensor, other]}; which is last is not known: let each core write its own part "
                "(nl.program_id), or one of them",
                record.at,
            )
        found |= np.uint8(1 << core)
        places.setdefault((tile.tensor, core), record.at)
    for record, core, tile in _accesses(trace, cores, ("reads",)):
        if tile.tensor not in writers:
            continue
        found = _elements(trace, writers[tile.tensor], tile)
        others = found[(found != 0) & (found & np.uint8(1 << core) == 0)]
        if others.size:
            other = int(others[0]).bit_length() - 1
            raise wrong(
                f"core {core} reads {others.size} elements of {_named(trace, tile)} that core {other} writes at "
                f"{places[tile.tensor, other]}; cores don't wait for each other in this model: launch the kernel on "
                "one core, or have each core compute what it reads",
                record.at,
            )


def _named(trace: Trace, tile: DramTile) -> str:
    return trace.tensors[tile.tensor].name or "a tensor in device memory"


def _accesses(trace: Trace, cores: Sequence[int], roles: tuple[str, ...]) -> Iterator[tuple[Record, int, DramTile]]:
    for group, core in zip(trace.groups, cores, strict=True):
        for record in group:
            for _, kind, tile in record.instruction.tiles():
                if isinstance(tile, DramTile) and isinstance(kind, TileKind) and kind.role in roles:
                    yield record, core, tile


def _elements(trace: Trace, known: Array, tile: DramTile) -> Array:
    """Those of an access; all, if it sees them as of another size."""
    if size_bytes(tile.dtype) != size_bytes(trace.tensors[tile.tensor].dtype):
        return known
    return as_strided(known[tile.offset.base :], [n for _, n in tile.dims], [step for step, _ in tile.dims])
