"""phases_one_by_one: each phase of a convolution of an enlarged map by itself, and the arithmetic on its results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import plain_axes, write_box
from tvm_neuron.codegen.passes.phase_weights import Small, weights_of
from tvm_neuron.codegen.passes.window_phases import Phases
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, gathered
from tvm_neuron.schedule.tensor import Tensor

Phase = tuple[int, ...]
"""Along each dimension that was enlarged, which one."""


@dataclass(frozen=True)
class Link:
    """A block that is cut, and its axes for the results along each dimension that was enlarged."""

    block: Block
    at: tuple[Axis, ...]


def phases_one_by_one(graph: Graph, block: Block, phases: Sequence[Phases], small: Small) -> dict[Block, list[Block]]:
    """The block, and each one that follows it, as a block for each phase."""
    links = followers(graph, block, phases)
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
    moved = write_box(out, [(0, extent) for extent in out.shape], blocks[0].origin, whole)
    return [*(replace(block, output=whole) for block in blocks), moved]


def followers(graph: Graph, block: Block, phases: Sequence[Phases]) -> list[Link]:
    """The block, and the arithmetic on single elements of what it computes that nothing else reads.

    None that reads an input besides: each phase would bring it in.
    """
    found = [Link(block, tuple(along.at for along in phases))]
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
        found.append(Link(reader, tuple(read[written.index(axis)] or axis for axis in last.at)))


def _is_whole(reader: Block, read: Sequence[Axis | None], out: Tensor) -> bool:
    """Whether each of its elements is computed of one of these, each once."""
    axes = {axis for axis in read if axis is not None}
    extents = tuple(1 if axis is None else axis.extent for axis in read)
    return extents == out.shape and axes == {axis for axis in reader.axes if axis.extent > 1}


def _is_linear(block: Block) -> bool:
    return all(linear_indices(indices) is not None for indices in (block.index, *(x.indices for x in block.loads())))


def _piece(link: Link, phases: Sequence[Phases], phase: Phase, counts: Sequence[Axis]) -> Block:
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


def _apart(piece: Block, link: Link, counts: Sequence[Axis]) -> Block:
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


def _reading(piece: Block, link: Link, counts: Sequence[Axis], whole: Tensor, before: Tensor) -> Block:
    """The piece reading what was made in this phase in the place of the whole."""
    own = dict(zip(link.at, counts, strict=True))
    read = plain_axes(next(load for load in link.block.loads() if load.tensor is whole).indices)
    assert read is not None
    there = Load(before, tuple(Index(own.get(axis, axis)) if axis else Num(0) for axis in read))

    def leaf(part: Num | Index | Load) -> Expr:
        return there if isinstance(part, Load) and part.tensor is whole else part

    return piece.with_expr(rewrite(piece.expr, leaf))
