"""Nest: a loop nest that is run at once, its private values, and what of them later instructions may still read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.native import assign
from tvm_neuron.program import Loop, Node
from tvm_neuron.sim.access import Access
from tvm_neuron.sim.execute import Bound, look
from tvm_neuron.sim.legal import settle
from tvm_neuron.sim.memory import Memory
from tvm_neuron.sim.statement import AnyTile, Axis, Statement, make_statements

# Arrays of one piece of a nest. Small enough to stay near the host's cache, large enough for its matrix products.
_PIECE_BYTES = 8 << 20
MOST_KEPT = 64  # turns whose lookups in memory are kept for further runs


@dataclass(slots=True)
class Nest:
    """Statements in the order of their text, inside one outermost loop."""

    statements: list[Statement]
    axis: Axis
    stored: list[Statement] = field(default_factory=list)  # whose private tiles are read outside this nest
    piece: int = 0  # iterations of the outermost loop that are run at once
    pieces: dict[tuple[int, ...], list[Bound]] = field(default_factory=dict, repr=False)  # by where they start

    def run(self, memory: Memory, outer: Sequence[int]) -> None:
        """Runs every iteration; `outer` are the indices of the loops around the nest."""
        for start in range(0, self.axis.count, self.piece):
            values: dict[AnyTile, NDArray[Any]] = {}
            for bound in self._bound(memory, outer, start):
                bound.run(values)
            for statement in self.stored:
                axes = self._axes(statement.lead, start)
                indices = (*outer, start, *(0 for _ in statement.counts[len(outer) + 1 :]))
                _store(statement.target, values[statement.tile], memory, indices, axes)

    def _bound(self, memory: Memory, outer: Sequence[int], start: int) -> list[Bound]:
        """The statements in the piece from `start` on; those of the first ones are kept for further runs."""
        found = self.pieces.get((*outer, start))
        if found is None:
            found = []
            for statement in self.statements:
                axes = self._axes(statement.axes, start)
                found.append(Bound(statement, memory, (*outer, start, *(0 for _ in axes[1:])), axes))
            if len(self.pieces) < MOST_KEPT:
                self.pieces[*outer, start] = found
        return found

    def _axes(self, axes: tuple[Axis, ...], start: int) -> tuple[Axis, ...]:
        """`axes` with the outermost one cut to the piece from `start` on."""
        root = Axis(self.axis.key, self.axis.depth, min(self.piece, self.axis.count - start))
        return (root, *axes[1:])[: len(axes)]


def make_nest(loop: Loop, counts: Sequence[int], pitch_bytes: dict[str, int]) -> Nest | str:
    """`loop`, which stands in loops that run `counts` times, as a Nest; or what stands in the way."""
    statements = list(_collect((loop,), tuple(counts), (), (), pitch_bytes))
    depth = len(counts)
    if not statements:
        return "it holds no instruction"
    if reason := settle(statements, depth):
        return reason
    nest = Nest(statements, statements[0].axes[0])
    nest.piece = _piece(nest, depth)
    return nest


def _collect(
    body: tuple[Node, ...],
    counts: tuple[int, ...],
    axes: tuple[Axis, ...],
    key: tuple[int, ...],
    pitch_bytes: dict[str, int],
) -> Iterator[Statement]:
    for number, node in enumerate(body):
        if isinstance(node, Loop):
            axis = Axis((*key, number), len(counts), node.count)
            yield from _collect(node.body, (*counts, node.count), (*axes, axis), axis.key, pitch_bytes)
        else:
            yield from make_statements(node, axes, counts, pitch_bytes)


def _piece(nest: Nest, depth: int) -> int:
    """Iterations of the outermost loop that are run at once; all where that loop is summed."""
    if any(depth in statement.summed for statement in nest.statements):
        return nest.axis.count
    total = 0
    for statement in nest.statements:
        kept = prod(axis.count for axis in statement.axes if axis.depth not in statement.summed)
        total += kept * prod(statement.target.shape) * 4
    return -(-nest.axis.count // min(max(1, -(-total // _PIECE_BYTES)), nest.axis.count))


def _store(access: Access, value: NDArray[Any], memory: Memory, indices: Sequence[int], axes: Sequence[Axis]) -> None:
    """Leaves in memory what running the iterations one by one would have left there."""
    if access.is_injective({axis.depth: axis.count for axis in axes}):
        assign(look(memory, access, indices, axes), value)
        return
    # The last value at each address. Loops that don't move it count with their last iteration only.
    turns = [range(a.count) if access.moves(a.depth) else range(a.count - 1, a.count) for a in axes]
    last: dict[int, tuple[int, ...]] = {}
    for turn in product(*turns):
        where = list(indices)
        for axis, index in zip(axes, turn, strict=True):
            where[axis.depth] += index
        address = access.address(where)
        last.pop(address, None)  # so that the dict is in the order of the last writes
        last[address] = turn
    for address, turn in last.items():
        place = tuple(index if size > 1 else 0 for index, size in zip(turn, value.shape, strict=False))
        assign(memory.view(access, address), value[place])
