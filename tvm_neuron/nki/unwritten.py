"""unwritten: what a kernel returns, or reads, that nothing has written.

Memory holds whatever was there before, on the model NaN. Which elements of each tensor are written, and which a call
reads before that, follows from the text. A kernel may read such elements, as where it masks its loads and its stores
but nothing between: they matter only where they reach what it returns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tvm_neuron.isa import DramTile, Instruction, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.operand import TileKind
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace
from tvm_neuron.nki.view import Tensor, View

Array = NDArray[Any]
_SHOWN = 3  # calls that read what is not written: more say the same


@dataclass
class _Written:
    """Of each block of a tensor [partitions, elems] which elements are written; those that all are have no entry."""

    trace: Trace
    partly: dict[Place, NDArray[np.bool_]] = field(default_factory=dict)
    whole: set[Place] = field(default_factory=set)

    def write(self, place: Place, tile: Tile | DramTile) -> None:
        """Takes an access that writes."""
        if place in self.whole:
            return
        tensor = self.trace.tensors[place[0]]
        if place not in self.partly and _is_all(tensor, tile):
            self.whole.add(place)
            return
        there = self._elements(place, tile)
        if there is not None:
            there[...] = True
        if there is None or self.partly[place].all():
            self.whole.add(place)
            self.partly.pop(place, None)

    def missing(self, place: Place, tile: Tile | DramTile) -> int:
        """How many elements of an access that reads are not written."""
        if place in self.whole:
            return 0
        there = self._elements(place, tile)
        return 0 if there is None else int(there.size - np.count_nonzero(there))

    def _elements(self, place: Place, tile: Tile | DramTile) -> NDArray[np.bool_] | None:
        """Those of an access; None if it sees them as of another size."""
        tensor = self.trace.tensors[place[0]]
        size = size_bytes(tensor.dtype)
        if size_bytes(tile.dtype) != size:
            return None
        if place not in self.partly:
            self.partly[place] = np.zeros((tensor.partitions, tensor.elems), np.bool_)
        known = self.partly[place]
        if isinstance(tile, DramTile):
            shape, steps = [count for _, count in tile.dims], [step for step, _ in tile.dims]
            return as_strided(known[0, tile.offset.base :], shape, steps)
        first = known[tile.partition.base :, tile.offset.base // size :]
        shape = [tile.partitions, *(count for _, count in tile.dims)]
        return as_strided(first, shape, [known.strides[0], *(step for step, _ in tile.dims)])


@dataclass(frozen=True)
class Unwritten:
    """`reads` are calls that read what nothing has written, by where they stand: what of which tile."""

    reads: dict[str, str]

    def may_show(self, outputs: Sequence[Array]) -> bool:
        """Whether such elements may have reached what a run gave: they are NaN, or any whole number."""
        return bool(self.reads) and any(_is_whole(values) or np.isnan(values).any() for values in outputs)

    def check(self, outputs: Sequence[Array], others: Sequence[Array]) -> None:
        """Compares what a run gave with what one gave where such elements were zeros.

        Raises:
            KernelError: they differ.
        """
        for number, (values, other) in enumerate(zip(outputs, others, strict=True)):
            bad = values != other if _is_whole(values) else np.isnan(values) & ~np.isnan(other)
            if not bad.any():
                continue
            first = [int(at) for at in np.argwhere(bad)[0]]
            told = [f"{what}, at {at}" for at, what in list(self.reads.items())[:_SHOWN]]
            raise wrong(
                f"{int(bad.sum())} of {bad.size} elements of result {number}, the first at {first}, follow from what "
                f"nothing has written: {'; '.join(told)}: write it first (nki.isa.memset), or mask what reads it",
                next(iter(self.reads)),
            )


def unwritten(trace: Trace, outputs: list[View]) -> Unwritten:
    """What the kernel reads although nothing has written it.

    Raises:
        KernelError: parts of an output are never written.
    """
    written, reads = _Written(trace), dict[str, str]()
    for record in trace.records:
        for place, tile in _tiles(record, ("reads",)):
            tensor = trace.tensors[place[0]]
            if tensor.kind == "scratch" and (count := written.missing(place, tile)):
                reads.setdefault(record.at, f"{count} elements of {_named(tensor)}")
        for place, tile in _tiles(record, ("writes", "updates")):
            written.write(place, tile)
    for view in outputs:
        tensor = view.tensor
        known = written.partly.get((tensor.number, 0))
        if known is not None and tensor.kind == "scratch":
            shape = trace.shapes[tensor.number]
            first = [int(at) for at in np.unravel_index(int(np.argmin(known)), shape)]
            raise wrong(
                f"the kernel returns {view}, but writes {np.count_nonzero(known)} of its {known.size} elements; the "
                f"first that it does not is {first}: store to all of it, or make it smaller",
                tensor.made,
            )
    return Unwritten(reads)


def _tiles(record: Record, roles: tuple[str, ...]) -> Iterator[tuple[Place, Tile | DramTile]]:
    """Accesses with one of the roles; a product that is the first of its sum writes."""
    instruction: Instruction = record.instruction
    for name, kind, tile in instruction.tiles():
        is_first = isinstance(kind, TileKind) and kind.unless and getattr(instruction, kind.unless) is not None
        if ("writes" if is_first else kind.role) in roles:
            yield (tile.tensor, 0) if isinstance(tile, DramTile) else record.places[name], tile


def _named(tensor: Tensor) -> str:
    return f"the {tensor.dtype} tile of {tensor.partitions} partitions made at {tensor.made}"


def _is_all(tensor: Tensor, tile: Tile | DramTile) -> bool:
    """Whether an access goes over all elements in their order."""
    lanes = (tile.partitions,) if isinstance(tile, Tile) else ()
    step, dims = 1, [(step, count) for step, count in tile.dims if count > 1]
    for here, count in reversed(dims):
        if here != step:
            return False
        step *= count
    is_as_made = size_bytes(tile.dtype) == size_bytes(tensor.dtype)
    return is_as_made and step == tensor.elems and lanes in ((), (tensor.partitions,))


def _is_whole(values: Array) -> bool:
    return values.dtype.kind in "iub"
