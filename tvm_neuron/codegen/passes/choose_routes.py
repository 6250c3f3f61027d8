"""choose_routes: a move across partitions goes straight, by the array, or by way of another layout, as is quickest.

A detector's boxes have their columns on the partitions, and the four numbers of each anchor lie together in the output:
a descriptor for each position, unless rows lie on the partitions and columns beside each other. So it is with an
output that the core computes: a classifier's, each score of which would be stored by itself, becomes a row first.
An input that is padded comes as a whole, in long rows, and an engine puts it into the padding, where that is quicker
than a descriptor for each row.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from tvm_neuron.codegen.passes.by_array import ByArray
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.choose_dims import distinct_dims
from tvm_neuron.codegen.passes.copies import replace_tensors
from tvm_neuron.codegen.passes.move_cost import pricer, staged_ps
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.codegen.passes.pieces import one_by_one
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.kernel import Transposition
from tvm_neuron.schedule.linear import Linear, counts
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

_MOST_PIECES = 16  # that a move is cut into: each is a kernel


def choose_routes(graph: Graph, partition_of: dict[Tensor, int], rules: Sequence[Rule], context: Context) -> None:
    """Lets moves read a copy that the PE array lays out along another dimension, where both together are quicker.

    Moves of one tensor share such a copy, which is made once the tensor is written whole: parts of a concatenation may
    be read before others are written.
    """
    routes = _Routes(graph, partition_of, rules, context)
    to_come = Counter(block.output for block in graph.blocks)
    for block in graph.blocks:
        load = moved_load(block)
        if load is not None and load.tensor.kind in ("input", "temp", "output") and not to_come[load.tensor]:
            graph.replace(block, *routes.best(block, load))
        to_come[block.output] -= 1
    for output in graph.outputs:
        if output.elems:
            routes.store(graph, output)
    for copy in set(routes.copies.values()) - routes.made:
        del partition_of[copy]


class _Routes:
    def __init__(self, graph: Graph, partition_of: dict[Tensor, int], rules: Sequence[Rule], context: Context) -> None:
        self.by_array = ByArray(graph, rules, context)
        self.partition_of, self.rules, self.context = partition_of, rules, context
        self.move_ps = pricer(rules, context)
        self.copies: dict[tuple[Tensor, int], Tensor] = {}
        self.made: set[Tensor] = set()

    def best(self, block: Block, load: Load) -> list[Block]:
        """The blocks that take the least time for what the block does."""
        routes = list(self._every(block, load))
        if all(self._goes_by_dma(last) for *_, last in routes):
            routes += self._placed(block, load)
        *copying, last = min(routes, key=lambda route: sum(map(self.move_ps, route)) + self._waits_ps(route, load))
        self.made.update(move.output for move in copying)
        return [*copying, last]

    def _waits_ps(self, route: list[Block], load: Load) -> int:
        """An input that comes straight waits for nothing; engines that take it wait for the start of its transfer."""
        return 1000 * self.context.device.dma_start_ns if load.tensor.kind == "input" and len(route) > 1 else 0

    def store(self, graph: Graph, output: Tensor) -> None:
        """Has the core compute a copy of an output, which then is stored with another dimension on the partitions.

        Only of outputs that would go element by element: rows are stored while engines work on, and this keeps them.
        """
        writers, here = graph.writers(output), self.partition_of[output]
        is_by_element = prod(output.shape[here + 1 :]) == 1
        if not is_by_element or len(writers) != 1 or apply_rules(writers[0], self.rules, self.context).by_dma:
            return
        least = staged_ps(output, self.partition_of, self.context.device)
        copy, best = Tensor(f"{output.name}.by{here}", output.shape, output.dtype), here
        self.partition_of[copy] = here
        move = _whole_move(writers[0], copy, output)
        for dim in distinct_dims(output.shape):
            self.partition_of[output] = dim
            if self._is_transposed(move) and self.move_ps(move) < least:
                best, least = dim, self.move_ps(move)
        self.partition_of[output] = best
        if best == here:
            del self.partition_of[copy]
            return
        for reader in graph.readers(output):
            graph.replace(reader, replace_tensors(reader, {output: copy}))
        graph.replace(writers[0], replace(writers[0], output=copy), move)

    def _is_transposed(self, move: Block) -> bool:
        """Whether the PE array does it."""
        return isinstance(apply_rules(move, self.rules, self.context).root, Transposition)

    def _every(self, block: Block, load: Load) -> Iterator[list[Block]]:
        """The move as it is, or of what an engine has put in its order, or of each copy, or by the array.

        Copies are made first, unless an earlier move has them already. Inputs come as a whole to theirs.
        """
        yield from self._both_ways([], block, load.tensor)
        tensor = load.tensor
        for dim in distinct_dims(tensor.shape):
            if dim == self.partition_of[tensor] and tensor.kind != "input":
                continue
            copy = self.copies.setdefault((tensor, dim), Tensor(f"{tensor.name}.by{dim}", tensor.shape, tensor.dtype))
            self.partition_of[copy] = dim
            last = block.with_expr(Load(copy, load.indices))
            copying = _whole_move(block, tensor, copy)
            if copy in self.made:
                yield from self._both_ways([], last, tensor)
            elif tensor.kind == "input" or self._is_transposed(copying):
                yield from self._both_ways([copying], last, tensor)

    def _goes_by_dma(self, move: Block) -> bool:
        return apply_rules(move, self.rules, self.context).by_dma

    def _placed(self, block: Block, load: Load) -> Iterator[list[Block]]:
        """The move to where it is to lie, and into its places there by an engine, if one can do that.

        Of what all else leaves to DMA: an engine or the array that does all of it works on parts as they come.
        """
        placed = _placed_after(block, load, self.partition_of[block.output])
        if placed:
            brought, place = placed
            self.copies[brought.output, 0], self.partition_of[brought.output] = brought.output, 0
            if not self._goes_by_dma(place):
                yield placed

    def _both_ways(self, copying: list[Block], last: Block, source: Tensor) -> Iterator[list[Block]]:
        yield [*copying, last]
        load = moved_load(last)
        ordered = _in_order(last, load, self.partition_of[load.tensor]) if load else None
        if ordered:
            order, _ = ordered
            self.copies[order.output, 0], self.partition_of[order.output] = order.output, 0
            if not self._goes_by_dma(order):
                yield [*copying, *ordered]
        summed = self.by_array.block(last, source)
        if summed is not None:
            yield [*copying, summed]
        if self._goes_by_dma(last) and (pieces := _pieces(last, self.partition_of)):
            yield [*copying, *pieces]


def _in_order(move: Block, load: Load, partition: int) -> list[Block] | None:
    """What a move reads in the order in which it writes, on the partitions where it lies, and the move of that.

    None where the innermost elements follow each other already, or partitions change places with what lies beside them.
    """
    maps, out = linear_indices(load.indices), linear_indices(move.index)
    read = {axis for part in maps or () for axis in part.terms}  # others repeat what is read
    if not maps or not out or prod(axis.extent for axis in read) != load.tensor.elems:
        return None
    here = maps[partition]
    innermost = [axis for part in out[-1:] for axis, step in part.terms.items() if step == 1]
    beside = [part.terms for d, part in enumerate(maps) if d != partition]
    if not innermost or innermost[0] in here.terms or any(here.terms.keys() & terms.keys() for terms in beside):
        return None
    if counts(here.terms) != load.tensor.shape[partition] or (beside and beside[-1].get(innermost[0]) == 1):
        return None
    places = {axis: (d, -step) for d, part in enumerate(out) for axis, step in part.terms.items()}
    axes = sorted((axis for axis in move.axes if axis not in here.terms), key=lambda axis: places.get(axis, (0, 0)))
    row, own = Axis("p", load.tensor.shape[partition]), {axis: Axis(axis.name, axis.extent) for axis in axes}
    by: dict[Axis, Expr] = {axis: Index(new) for axis, new in own.items()}
    copy = Tensor(f"{load.tensor.name}.ordered", (row.extent, *(axis.extent for axis in axes)), load.tensor.dtype)
    places_read = tuple(Index(row) if d == partition else replace_axes(i, by) for d, i in enumerate(load.indices))
    order = Block(move.origin, (row, *own.values()), copy, (Index(row), *by.values()), Load(load.tensor, places_read))
    moved = move.with_expr(Load(copy, (load.indices[partition], *map(Index, axes))))
    return [canonical(order), canonical(moved)]


def _placed_after(move: Block, load: Load, partition: int) -> list[Block] | None:
    """The move of what it reads, in its order, to the partitions where it is to lie, and from there to its places.

    None where it lies on one partition, or partitions change places with what lies beside them.
    """
    maps, out = linear_indices(load.indices), linear_indices(move.index)
    there = out[partition] if out else Linear(0, {})
    beside = {axis for d, part in enumerate(out or ()) if d != partition for axis in part.terms}
    if not maps or not out or not counts(there.terms) > 1 or beside & there.terms.keys():
        return None
    places = {axis: (d, -step) for d, part in enumerate(maps) for axis, step in part.terms.items()}
    axes = sorted(places.keys() - there.terms.keys(), key=lambda axis: (places[axis], axis.name))
    copy = Tensor(
        f"{move.output.name}.brought", (there.span[1] + 1, *(axis.extent for axis in axes)), load.tensor.dtype
    )
    brought = Block(move.origin, (*there.terms, *axes), copy, (there.expr(), *map(Index, axes)), load)
    row = Axis("p", counts(there.terms))
    here = Linear(there.const, {row: 1}).expr()
    index = tuple(here if d == partition else part for d, part in enumerate(move.index))
    rest = tuple(axis for axis in move.axes if axis not in there.terms)
    place = Block(move.origin, (row, *rest), move.output, index, Load(copy, (here, *map(Index, axes))))
    return [canonical(brought), canonical(place)]


def _pieces(move: Block, partition_of: Mapping[Tensor, int]) -> list[Block]:
    """The move for each head by itself, where heads of channels lie beside each other on the source's partitions.

    Of 96 channels each, say: they lie otherwise to the chunks of partitions than where they go to, so that no
    instruction covers several heads, but those of one begin where engines can read.
    """
    load = moved_load(move)
    maps = linear_indices(load.indices) if load else None
    if load is None or maps is None:
        return []
    here = maps[partition_of[load.tensor]]
    heads = [axis for axis, step in here.terms.items() if step > 1]
    steps = [here.const, *(here.terms[axis] for axis in heads)]
    count = prod(axis.extent for axis in heads)
    if len(here.terms) < 2 or not 1 < count <= _MOST_PIECES or any(step % PARTITION_START_STEP for step in steps):
        return []
    return [piece for _, piece in one_by_one(move, heads)]


def _whole_move(block: Block, source: Tensor, target: Tensor) -> Block:
    axes = tuple(Axis(f"c{d}", extent) for d, extent in enumerate(source.shape))
    index = tuple(Index(axis) for axis in axes)
    return canonical(Block(block.origin, axes, target, index, Load(source, index)))
