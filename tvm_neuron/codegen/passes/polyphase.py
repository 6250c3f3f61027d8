"""polyphase: convolutions of a map that is enlarged, by zeros or by repeating it, read the small one, phase by phase.

A transposed convolution of stride 2 multiplies three zeros for each number, and a window of 3 x 3 over an image that
was doubled sees 2 x 2 of its pixels. Every second row of the results meets the same part of the window: of these a
convolution with that part of the weights, or with sums of weights, is all that there is to compute.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import moved_load, plain_axes
from tvm_neuron.codegen.passes.phase_weights import Small, weights_of
from tvm_neuron.codegen.passes.phases_as_channels import may_be_channels, phases_as_channels
from tvm_neuron.codegen.passes.positions_of import Origins, positions_of
from tvm_neuron.codegen.passes.window_phases import Phases, phases_of
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, factors, gathered, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor

MOST = 64
"""Phases of one convolution by themselves: each is a kernel, with weights of its own and every so manieth result."""

Phase = tuple[int, ...]
"""Along each dimension that was enlarged, which one."""


def polyphase(graph: Graph, is_better: Callable[[Sequence[Block], Sequence[Block]], bool]) -> None:
    """Replaces contractions of enlarged maps, and the arithmetic on what they compute, by one for each phase.

    Or by one that has all phases as output channels. Where `is_better` says of the blocks that there are, and of those
    that would be, that it is.
    """
    for tensor in list(graph.tensors()):
        origins = positions_of(graph, tensor)
        found = {block: _along(block, origins) for block in graph.readers(tensor)} if origins else {}
        cut = {block: phases for block, phases in found.items() if phases}
        if origins is None or not cut:
            continue
        best: dict[Block, list[Block]] = {}
        moves = _moves(graph, tensor, origins.source) if len(cut) == len(found) else []
        for make in (_together, _one_by_one):
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
        links = _links(graph, block, phases)
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
        by |= _in_phases(graph, block, phases, small)
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


@dataclass(frozen=True)
class _Link:
    """A block that is cut, and its axes for the results along each dimension that was enlarged."""

    block: Block
    at: tuple[Axis, ...]


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
    inside = list(zip(before, source.shape, strict=True))
    shape = tuple(low + extent + high for extent, (low, high) in zip(source.shape, room, strict=True))
    padded = Tensor(f"{source.name}.padded", shape, source.dtype)
    blocks = []
    for d, (low, high) in enumerate(room):
        whole = [(0, extent) for extent in shape[d + 1 :]]
        for at, size in ((0, low), (low + source.shape[d], high)):
            blocks += [_written(padded, [*inside[:d], (at, size), *whole], origin, None)] if size else []
    return Small(padded, before), [*blocks, _written(padded, inside, origin, source)]


def _written(into: Tensor, box: Sequence[tuple[int, int]], origin: Origin, source: Tensor | None) -> Block:
    """The source, or zeros, at a box: where it begins, and its size, along each dimension."""
    axes = tuple(Axis(f"p{d}", size) for d, (_, size) in enumerate(box))
    index = tuple(Linear(at, {axis: 1}).index() for axis, (at, _) in zip(axes, box, strict=True))
    return canonical(Block(origin, axes, into, index, Load(source, tuple(map(Index, axes))) if source else Num(0.0)))


def _in_phases(graph: Graph, block: Block, phases: Sequence[Phases], small: Small) -> dict[Block, list[Block]]:
    """The block, and each one that follows it, as a block for each phase."""
    links = _links(graph, block, phases)
    found: list[list[Block]] = [[] for _ in links]
    for phase in product(*(range(along.count) for along in phases)):
        before: Tensor | None = None  # of what the last block made in this phase
        for number, (link, blocks) in enumerate(zip(links, found, strict=True)):
            counts = [
                Axis(at.name, along.results(which)) for at, along, which in zip(link.at, phases, phase, strict=True)
            ]
            piece = _piece(link, phases, phase, counts)
            if before is None:
                piece = _contraction(piece, block, phases, phase, counts, small)
            else:
                piece = _reading(piece, link, counts, links[number - 1].block.output, before)
            if number + 1 < len(links):
                piece = _apart(piece, link, counts)
            before = piece.output
            blocks.append(canonical(piece))
    found[-1] = _put_together(found[-1]) if len(graph.writers(links[-1].block.output)) == 1 else found[-1]
    return {link.block: blocks for link, blocks in zip(links, found, strict=True)}


def _put_together(blocks: Sequence[Block]) -> list[Block]:
    """The blocks writing on chip where they wrote an output, and the move there: a DMA takes whole rows at a time."""
    out = blocks[0].output
    if not out.is_stored:
        return [*blocks]
    whole = replace(out, name=f"{out.name}.whole", kind="temp")
    moved = _written(out, [(0, extent) for extent in out.shape], blocks[0].origin, whole)
    return [*(replace(block, output=whole) for block in blocks), moved]


def _links(graph: Graph, block: Block, phases: Sequence[Phases]) -> list[_Link]:
    """The block, and the arithmetic on single elements of what it computes that nothing else reads.

    None that reads an input besides: each phase would bring it in.
    """
    found = [_Link(block, tuple(along.at for along in phases))]
    while True:
        last = found[-1]
        out, readers = last.block.output, graph.readers(last.block.output)
        written = plain_axes(last.block.index)
        if out.kind != "temp" or len(readers) != 1 or len(graph.writers(out)) != 1 or written is None:
            return found
        (reader,) = readers
        loads = {load for load in reader.loads() if load.tensor is out}
        read = plain_axes(next(iter(loads)).indices) if len(loads) == 1 else None
        is_plain = not reader.combine and not isinstance(reader.expr, Load) and not gathered(reader)
        is_plain = is_plain and all(tensor.kind != "input" for tensor in reader.sources())
        if not is_plain or read is None or not _is_whole(reader, read, out) or not _is_linear(reader):
            return found
        found.append(_Link(reader, tuple(read[written.index(axis)] or axis for axis in last.at)))


def _is_whole(reader: Block, read: Sequence[Axis | None], out: Tensor) -> bool:
    """Whether each of its elements is computed of one of these, each once."""
    axes = {axis for axis in read if axis is not None}
    extents = tuple(1 if axis is None else axis.extent for axis in read)
    return extents == out.shape and axes == {axis for axis in reader.axes if axis.extent > 1}


def _is_linear(block: Block) -> bool:
    return all(linear_indices(indices) is not None for indices in (block.index, *(x.indices for x in block.loads())))


def _piece(link: _Link, phases: Sequence[Phases], phase: Phase, counts: Sequence[Axis]) -> Block:
    """The block at the results of a phase alone."""
    own = dict(zip(link.at, counts, strict=True))
    by: dict[Axis, Expr] = {
        at: Linear(which, {own[at]: along.count}).expr()
        for at, along, which in zip(link.at, phases, phase, strict=True)
    }
    return replace(
        link.block,
        axes=tuple(own.get(axis, axis) for axis in link.block.axes),
        index=tuple(replace_axes(part, by) for part in link.block.index),
        expr=replace_axes(link.block.expr, by),
    )


def _contraction(
    piece: Block, block: Block, phases: Sequence[Phases], phase: Phase, counts: Sequence[Axis], small: Small
) -> Block:
    """That of the small map, with the weights of the phase."""
    data = data_factor(block)
    assert data is not None
    taps = [Axis(f"t{along.dim}", len(along.places(which)), True) for along, which in zip(phases, phase, strict=True)]
    indices = small.indices(data)
    for along, which, count, tap in zip(phases, phase, counts, taps, strict=True):
        places = along.places(which)
        at = Linear(small.before[along.dim] + places[0], {count: along.step, tap: places.step})
        indices[along.dim] = at.expr()
    meets = [_meets(along, which) for along, which in zip(phases, phase, strict=True)]
    weights = weights_of(block, [along.tap for along in phases], meets, taps)
    gone = {along.tap for along in phases}
    axes = (*(axis for axis in piece.axes if axis not in gone), *taps)
    return replace(piece, axes=axes, expr=Apply("multiply", (Load(small.tensor, tuple(indices)), weights)))


def _meets(along: Phases, which: int) -> NDArray[np.float32]:
    """[taps of the window, places]: 1 where the tap meets the place in that phase."""
    return (along.taps[which][:, None] == np.array(along.places(which))).astype(np.float32)


def _apart(piece: Block, link: _Link, counts: Sequence[Axis]) -> Block:
    """The piece into a tensor of its own."""
    own = dict(zip(link.at, counts, strict=True))
    written = plain_axes(link.block.index)
    assert written is not None
    axes = [own.get(axis, axis) if axis else None for axis in written]
    index = tuple(Index(axis) if axis else Num(0) for axis in axes)
    tensor = Tensor(
        f"{piece.output.name}.phase", tuple(axis.extent if axis else 1 for axis in axes), piece.output.dtype
    )
    return replace(piece, output=tensor, index=index)


def _reading(piece: Block, link: _Link, counts: Sequence[Axis], whole: Tensor, before: Tensor) -> Block:
    """The piece reading what was made in this phase in the place of the whole."""
    own = dict(zip(link.at, counts, strict=True))
    read = plain_axes(next(load for load in link.block.loads() if load.tensor is whole).indices)
    assert read is not None
    there = Load(before, tuple(Index(own.get(axis, axis)) if axis else Num(0) for axis in read))

    def leaf(part: Num | Index | Load) -> Expr:
        return there if isinstance(part, Load) and part.tensor is whole else part

    return piece.with_expr(rewrite(piece.expr, leaf))
