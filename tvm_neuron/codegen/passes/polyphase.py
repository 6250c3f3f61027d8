"""polyphase: convolutions of a map that is enlarged, by zeros or by repeating it, read the small one, phase by phase.

A transposed convolution of stride 2 multiplies three zeros for each number, and a window of 3 x 3 over an image that
was doubled sees 2 x 2 of its pixels. Every second row of the results meets the same part of the window: of these a
convolution with that part of the weights, or with sums of weights, is all that there is to compute.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from tvm_neuron.codegen.kernels.bring_in import border
from tvm_neuron.codegen.passes.moves import moved_load, write_box
from tvm_neuron.codegen.passes.phase_weights import Small
from tvm_neuron.codegen.passes.phases_as_channels import may_be_channels, phases_as_channels
from tvm_neuron.codegen.passes.phases_one_by_one import followers, phases_one_by_one
from tvm_neuron.codegen.passes.positions_of import Origins, positions_of
from tvm_neuron.codegen.passes.window_phases import Phases, phases_of
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Load, axes_of
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor

_NOWHERE = -1  # the dimension of a border that is left as it is
MOST = 64
"""Phases of one convolution by themselves: each is a kernel, with weights of its own and every so manieth result."""


def polyphase(graph: Graph, is_better: Callable[[Sequence[Block], Sequence[Block]], bool]) -> None:
    """Replaces contractions of enlarged maps, and the arithmetic on what they compute, by one for each phase.

    Or by one that has all phases as output channels. Where `is_better` says of the blocks that there are, and of those
    that would be, that it is.
    """
    for tensor in list(graph.tensors()):
        readers = graph.readers(tensor)
        origins = positions_of(graph, tensor) if any(map(is_constant_contraction, readers)) else None
        found = {block: _along(block, origins) for block in readers} if origins else {}
        cut = {block: phases for block, phases in found.items() if phases}
        if origins is None or not cut:
            continue
        best: dict[Block, list[Block]] = {}
        moves = _moves(graph, tensor, origins.source) if len(cut) == len(found) else []
        for make in (_together, _one_by_one):
            # The moves count beside the channels, too, which need none: their price knows no folds, and no memory.
            by = make(graph, origins.source, cut)
            there = [piece for block in by for piece in best.get(block, [block])]
            if by and is_better([*moves, *there], [piece for pieces in by.values() for piece in pieces]):
                best = by
        for block, pieces in best.items():
            graph.replace(block, *pieces)


def _together(graph: Graph, source: Tensor, cut: Mapping[Block, Sequence[Phases]]) -> dict[Block, list[Block]]:
    """Each as one contraction with the results of all phases, and the arithmetic that follows it as it is."""
    if not all(may_be_channels(block) for block in cut):
        return {}
    origin = next(iter(cut)).origin
    small, made = _padded(source, [(along, along.whole_span) for phases in cut.values() for along in phases], origin)
    by: dict[Block, list[Block]] = {}
    for block, phases in cut.items():
        links = followers(graph, block, phases)
        by |= {block: phases_as_channels(block, phases, small)} | {link.block: [link.block] for link in links[1:]}
    by[next(iter(cut))][:0] = made
    return by


def _one_by_one(graph: Graph, source: Tensor, cut: Mapping[Block, Sequence[Phases]]) -> dict[Block, list[Block]]:
    """Each as one contraction for every phase, and so the arithmetic that follows it."""
    if any(prod(along.count for along in phases) > MOST for phases in cut.values()):
        return {}
    origin = next(iter(cut)).origin
    small, made = _padded(source, [(along, along.span) for phases in cut.values() for along in phases], origin)
    by: dict[Block, list[Block]] = {}
    for block, phases in cut.items():
        by |= phases_one_by_one(graph, block, phases, small)
    by[next(iter(cut))][:0] = made
    return by


def _moves(graph: Graph, tensor: Tensor, source: Tensor) -> list[Block]:
    """All that makes the tensor of its source."""
    found: list[Block] = []
    while tensor is not source:
        writers = graph.writers(tensor)
        found[:0] = writers
        tensor = next(load.tensor for load in map(moved_load, writers) if load)
    return found


def _along(block: Block, origins: Origins) -> list[Phases]:
    """Of each dimension along which the data were enlarged; none where nothing would be gained."""
    data = data_factor(block)
    maps = linear_indices(data.indices) if data else None
    into = linear_indices(block.index)
    if data is None or maps is None or into is None or not is_constant_contraction(block):
        return []
    constants = [part for part in factors(block.expr) if part is not data]
    if any(isinstance(part, Load) and "float" not in part.tensor.dtype for part in constants):
        return []  # sums of narrow whole numbers need not be such
    found = []
    for d, (part, positions) in enumerate(zip(maps, origins.positions, strict=True)):
        extent = origins.source.shape[d]
        if np.array_equal(positions, np.arange(extent)):
            continue
        along = phases_of(d, part, positions, extent)
        elsewhere = {axis for e, other in enumerate(maps) if e != d for axis in other.terms}
        weighted = {axis for factor in constants for axis in axes_of(factor)}
        if along is None or elsewhere & {along.at, along.tap} or along.at in weighted:
            return []
        if sum(along.at in written.terms for written in into) != 1:
            return []
        found.append(along)
    is_less = prod(along.kept for along in found) < prod(along.asked for along in found)
    return found if is_less and prod(along.count for along in found) > 1 else []


def _padded(
    source: Tensor, spans: Sequence[tuple[Phases, tuple[int, int]]], origin: Origin
) -> tuple[Small, list[Block]]:
    """The source with as many zeros around it as are read, and what makes it; itself where it asks for none."""
    room = []
    for d, extent in enumerate(source.shape):
        found = [span for along, span in spans if along.dim == d]
        low, high = min((low for low, _ in found), default=0), max((high for _, high in found), default=0)
        room.append((max(0, -low), max(0, high + 1 - extent)))
    before = tuple(low for low, _ in room)
    if not any(map(any, room)):
        return Small(source, before), []
    inside = [(low, low + extent) for low, extent in zip(before, source.shape, strict=True)]
    shape = tuple(low + extent + high for extent, (low, high) in zip(source.shape, room, strict=True))
    padded = Tensor(f"{source.name}.padded", shape, source.dtype)
    blocks = [write_box(padded, box, origin, None) for box in border(shape, _NOWHERE, inside)]
    return Small(padded, before), [*blocks, write_box(padded, inside, origin, source)]
