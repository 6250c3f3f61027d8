"""positions_of: what a tensor holds that moves and zeros write, told by the positions along each of its dimensions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Num
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor

NOTHING = -1
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Origins:
    """Of each dimension where in `source`, which has as many, its elements lie; a zero where any of them is NOTHING."""

    source: Tensor
    positions: tuple[Positions, ...]


def positions_of(graph: Graph, tensor: Tensor) -> Origins | None:
    """Where the elements of a tensor come from that is one other, spread, repeated or amid zeros, as often as may be.

    None of any other tensor, and of one that is written in no such order.
    """
    writers = graph.writers(tensor)
    moves = [block for block in writers if moved_load(block) is not None]
    loads = [moved_load(block) for block in moves]
    sources = {load.tensor for load in loads if load is not None}
    fills = [block for block in writers if block not in moves]
    if len(sources) != 1 or tensor.kind != "temp" or not all(block.expr == Num(0.0) for block in fills):
        return None
    (source,) = sources
    if source.dtype != tensor.dtype or len(source.shape) != len(tensor.shape):
        return None
    found = [np.full(extent, NOTHING) for extent in tensor.shape]
    written = 0
    for block in moves:
        part = _of_move(block)
        if part is None:
            return None
        for into, (at, come_from) in zip(found, part, strict=True):
            if ((into[at] != NOTHING) & (into[at] != come_from)).any():
                return None
            into[at] = come_from
        written += int(np.prod([len(at) for at, _ in part]))
    if written != int(np.prod([(into != NOTHING).sum() for into in found])):
        return None  # it is no product of positions along each dimension
    before = positions_of(graph, source)
    if before is None:
        return Origins(source, tuple(found))
    return Origins(before.source, tuple(map(_through, found, before.positions)))


def _of_move(block: Block) -> list[tuple[Positions, Positions]] | None:
    """Along each dimension where the move writes, each place once, and what it reads there."""
    load = moved_load(block)
    into, read = linear_indices(block.index), linear_indices(load.indices) if load else None
    if into is None or read is None:
        return None
    used = [axis for part in into for axis in part.terms]
    if len(used) != len(set(used)) or any(
        not part.terms.keys() <= to.terms.keys() for to, part in zip(into, read, strict=True)
    ):
        return None
    found = []
    for to, part in zip(into, read, strict=True):
        axes = list(to.terms)
        shape = [axis.extent for axis in axes]
        at, come_from = (np.broadcast_to(evaluate(m.expr(), axes), shape).ravel() for m in (to, part))
        if len(np.unique(at)) != len(at):
            return None
        found.append((at, come_from))
    return found


def _through(here: Positions, before: Positions) -> Positions:
    return np.where(here == NOTHING, NOTHING, before[here])
