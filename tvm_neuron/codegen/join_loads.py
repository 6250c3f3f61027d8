"""join_loads: weights of several layers in one transfer, where the rows of each are short.

A descriptor moves what goes to one partition, and takes as long for a hundred bytes as for a thousand. Weights whose
places lie side by side may lie so in DRAM, too, and come together when the first of them would.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import ALIGNMENT_BYTES
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.codegen.weight_loads import Ints, Load, times_read, touched_bytes, weight_loads, without_gaps
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile
from tvm_neuron.isa.dtypes import DTYPES, size_bytes
from tvm_neuron.program import DramTensor, Node

_MOST_ROW_BYTES = 4096  # a DMA is saturated from here on; what comes first would only wait for more


def join_loads(emitted: Emitted, device: Device) -> Emitted:
    """The same with loads joined that take less time so; as it was, if there are none."""
    loads = _single_loads(emitted)
    touched = touched_bytes(emitted.program.body) if len(loads) > 1 else None
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
    return without_gaps(emitted, tensors, [node for node in body if node is not None], arrays)


def _single_loads(emitted: Emitted) -> list[Load]:
    """Those of weights that nothing else brings, each as often as the model has it."""
    names, uses = emitted.program.tensors, times_read(emitted)
    repeats = emitted.builder.repeats
    return [load for load in weight_loads(emitted) if uses[load.tensor] == 1 and names[load.tensor].name not in repeats]


def _grouped(loads: Sequence[Load], touched: Ints, device: Device) -> list[list[Load]]:
    """Loads of a queue, each right behind the one before, as long as one transfer for all is the shorter for it."""
    found: list[list[Load]] = []
    last: dict[int, list[Load]] = {}
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


def _goes_behind(before: Load, load: Load) -> bool:
    """Whether its place is the next one; between two that are aligned nothing else begins."""
    one, other = before.into, load.into
    is_alike = (one.dtype, one.partition, one.skew) == (other.dtype, other.partition, other.skew)
    return is_alike and 0 <= load.first - before.end < (1 if one.skew else ALIGNMENT_BYTES)


def _is_free(first: Load, load: Load, touched: Ints) -> bool:
    """Whether nothing touches the place of a load between another one and it."""
    between = touched[np.searchsorted(touched[:, 0], first.at, "right") : np.searchsorted(touched[:, 0], load.at)]
    return not np.any((between[:, 1] < load.first + load.into.extent_bytes) & (between[:, 2] > load.first))


def _joined(group: Sequence[Load]) -> DmaCopy:
    """All by the transfer of the first, as rows from its first byte to the last one's end."""
    first = group[0]
    rows = max(load.into.partitions for load in group)
    elems = (group[-1].end - first.first) // size_bytes(first.into.dtype)
    into = replace(first.into, partitions=rows, dims=((1, elems),))
    out_of = DramTile(first.tensor, into.dtype, Affine(), ((elems, rows), (1, elems)))
    return first.copy.replace(target=into, source=out_of)


def _side_by_side(group: Sequence[Load], arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """[rows, elements] of them, zero where none has any."""
    copy = _joined(group)
    found = np.zeros(copy.target.shape, DTYPES[group[0].into.dtype])
    for load, array in zip(group, arrays, strict=True):
        start = (load.first - group[0].first) // array.itemsize
        found[: load.into.partitions, start : start + load.into.free_elems] = array.reshape(load.into.partitions, -1)
    return found
