"""weight_loads: the transfers of a program that bring weights, as they can be joined, or done without."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.program import DramTensor, Loop, Node, Program
from tvm_neuron.program.program import walk

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Load:
    """Weights that come whole by a transfer at node `at`: rows behind each other to one place on each partition."""

    at: int
    copy: DmaCopy
    into: Tile
    tensor: int

    @property
    def first(self) -> int:
        """Byte of the first partition."""
        return self.into.offset.base

    @property
    def end(self) -> int:
        """One past its last byte there."""
        return self.first + self.into.free_elems * size_bytes(self.into.dtype)


def weight_loads(emitted: Emitted) -> Iterator[Load]:
    """Those of weights that come whole, outside of loops."""
    program = emitted.program
    for at, node in enumerate(program.body):
        if not isinstance(node, DmaCopy) or not isinstance(node.source, DramTile) or not isinstance(node.target, Tile):
            continue
        source, into = node.source, node.target
        tensor = program.tensors[source.tensor]
        rows = (into.free_elems, into.partitions), (1, into.free_elems)
        is_plain = source.offset == Affine() and source.dims == rows and tensor.elems == source.elems
        is_alone = into.dims == ((1, into.free_elems),) and source.dtype == into.dtype
        if tensor.kind == "weight" and is_plain and is_alone:
            yield Load(at, node, into, source.tensor)


def times_read(emitted: Emitted) -> Counter[int]:
    """How many transfers read each tensor of the program's table."""
    every = (each for _, each in walk((*emitted.prologue, *emitted.program.body)) if each.engine == "dma")
    return Counter(tile.tensor for each in every for _, _, tile in each.tiles() if isinstance(tile, DramTile))


def touched_bytes(body: Sequence[Node]) -> Ints:
    """[accesses, 3]: the node of each access to SBUF, and the bytes between which it is, on whatever partitions."""
    found = []
    for at, node in enumerate(body):
        for counts, instruction in walk((node,)):
            for _, _, tile in instruction.tiles():
                if isinstance(tile, Tile) and tile.space == "sbuf":
                    low, high = tile.offset.span(counts)
                    found.append((at, low, high + tile.extent_bytes))
    return np.array(found, np.int64).reshape(-1, 3)


def without_gaps(
    emitted: Emitted, tensors: Sequence[DramTensor | None], body: Sequence[Node], arrays: Mapping[str, NDArray[Any]]
) -> Emitted:
    """With the tensors that there still are, by the numbers they have now."""
    left = [number for number, tensor in enumerate(tensors) if tensor is not None]
    numbers = {old: new for new, old in enumerate(left)}
    program = Program(tuple(filter(None, tensors)), emitted.program.origins, _renumbered(body, numbers))
    return replace(emitted, program=program, prologue=_renumbered(emitted.prologue, numbers), arrays=arrays)


def _renumbered(nodes: Iterable[Node], numbers: Mapping[int, int]) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            found.append(Loop(node.count, _renumbered(node.body, numbers)))
            continue
        tiles = node.tiles() if node.engine == "dma" else ()
        moved = {n: replace(t, tensor=numbers[t.tensor]) for n, _, t in tiles if isinstance(t, DramTile)}
        found.append(node.replace(**moved) if moved else node)
    return tuple(found)
