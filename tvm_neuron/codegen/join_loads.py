"""join_loads: weights of several layers in one transfer, where the rows of each are short.

A descriptor moves what goes to one partition, and takes as long for a hundred bytes as for a thousand. Weights whose
places lie side by side may lie so in DRAM, too, and come together when the first of them would.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import ALIGNMENT_BYTES
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import DTYPES, size_bytes
from tvm_neuron.program import DramTensor, Loop, Node, Program
from tvm_neuron.program.program import walk

_MOST_ROW_BYTES = 4096  # a DMA is saturated from here on; what comes first would only wait for more
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Load:
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


def join_loads(emitted: Emitted, device: Device) -> Emitted:
    """The same with loads joined that take less time so; as it was, if there are none."""
    loads = list(_loads(emitted))
    touched = _touched(emitted.program.body) if len(loads) > 1 else None
    groups = [g for g in _grouped(loads, touched, device) if len(g) > 1] if touched is not None else []
    if not groups:
        return emitted
    tensors: list[DramTensor | None] = list(emitted.program.tensors)
    body: list[Node | None] = list(emitted.program.body)
    arrays = dict(emitted.arrays)
    for group in groups:
        name = emitted.program.tensors[group[0].tensor].name
        values = _side_by_side(group, [arrays.pop(emitted.program.tensors[load.tensor].name) for load in group])
        for load in group:
            tensors[load.tensor] = body[load.at] = None
        tensors[group[0].tensor] = DramTensor(name, "weight", values.shape, group[0].into.dtype)
        arrays[name] = values
        body[group[0].at] = _joined(group)
    return _without_gaps(emitted, tensors, [node for node in body if node is not None], arrays)


def _loads(emitted: Emitted) -> Iterator[_Load]:
    """Those of weights that come once, outside of loops."""
    program = emitted.program
    uses = Counter(
        tile.tensor
        for _, each in walk((*emitted.prologue, *program.body))
        if each.engine == "dma"
        for _, _, tile in each.tiles()
        if isinstance(tile, DramTile)
    )
    for at, node in enumerate(program.body):
        if not isinstance(node, DmaCopy) or not isinstance(node.source, DramTile) or not isinstance(node.target, Tile):
            continue
        source, into = node.source, node.target
        tensor = program.tensors[source.tensor]
        is_once = tensor.kind == "weight" and uses[source.tensor] == 1 and tensor.name not in emitted.builder.repeats
        rows = (into.free_elems, into.partitions), (1, into.free_elems)
        is_plain = source.offset == Affine() and source.dims == rows and tensor.elems == source.elems
        if is_once and is_plain and into.dims == ((1, into.free_elems),) and source.dtype == into.dtype:
            yield _Load(at, node, into, source.tensor)


def _touched(body: Sequence[Node]) -> Ints:
    """[accesses, 3]: the node of each access to SBUF, and the bytes between which it is, on whatever partitions."""
    found = []
    for at, node in enumerate(body):
        for counts, instruction in walk((node,)):
            for _, _, tile in instruction.tiles():
                if isinstance(tile, Tile) and tile.space == "sbuf":
                    low, high = tile.offset.span(counts)
                    found.append((at, low, high + tile.extent_bytes))
    return np.array(found, np.int64).reshape(-1, 3)


def _grouped(loads: Sequence[_Load], touched: Ints, device: Device) -> list[list[_Load]]:
    """Loads of a queue, each right behind the one before, as long as one transfer for all is the shorter for it."""
    found: list[list[_Load]] = []
    last: dict[int, list[_Load]] = {}
    for load in loads:
        group = last.get(load.copy.ring, [])
        if group and _goes_behind(group[-1], load) and _is_free(group[0], load, touched):
            apart = sum(copy.cost(device).busy_cycles for copy in (_joined(group), load.copy))
            is_short = load.end - group[0].first <= _MOST_ROW_BYTES
            if is_short and _joined([*group, load]).cost(device).busy_cycles < apart:
                group.append(load)
                continue
        last[load.copy.ring] = [load]
        found.append(last[load.copy.ring])
    return found


def _goes_behind(before: _Load, load: _Load) -> bool:
    """Whether its place is the next one; between two that are aligned nothing else begins."""
    one, other = before.into, load.into
    is_alike = (one.dtype, one.partition, one.skew) == (other.dtype, other.partition, other.skew)
    return is_alike and 0 <= load.first - before.end < (1 if one.skew else ALIGNMENT_BYTES)


def _is_free(first: _Load, load: _Load, touched: Ints) -> bool:
    """Whether nothing touches the place of a load between another one and it."""
    between = touched[np.searchsorted(touched[:, 0], first.at, "right") : np.searchsorted(touched[:, 0], load.at)]
    return not np.any((between[:, 1] < load.first + load.into.extent_bytes) & (between[:, 2] > load.first))


def _joined(group: Sequence[_Load]) -> DmaCopy:
    """All by the transfer of the first, as rows from its first byte to the last one's end."""
    first = group[0]
    rows = max(load.into.partitions for load in group)
    elems = (group[-1].end - first.first) // size_bytes(first.into.dtype)
    into = replace(first.into, partitions=rows, dims=((1, elems),))
    out_of = DramTile(first.tensor, into.dtype, Affine(), ((elems, rows), (1, elems)))
    return first.copy.replace(target=into, source=out_of)


def _side_by_side(group: Sequence[_Load], arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """[rows, elements] of them, zero where none has any."""
    copy = _joined(group)
    found = np.zeros(copy.target.shape, DTYPES[group[0].into.dtype])
    for load, array in zip(group, arrays, strict=True):
        start = (load.first - group[0].first) // array.itemsize
        found[: load.into.partitions, start : start + load.into.free_elems] = array.reshape(load.into.partitions, -1)
    return found


def _without_gaps(
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
