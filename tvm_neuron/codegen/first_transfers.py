"""inputs_first, brought_in_order, gathers_apart: what the first layers wait for comes first.

What waits for nothing is ready at once, and of all that is, the queue with the lower number goes first. So tables that
the last layer needs would come before the input, and before the weights of the first layer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import takewhile

from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, MOVE_QUEUE, WEIGHTS_QUEUE
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.isa import DmaCopy, DmaGather, DramTile, Memset, Tile
from tvm_neuron.program import Node, Program


def inputs_first(emitted: Emitted) -> Emitted:
    """The same with inputs before all that comes with them; as it was, if there are none or they do."""
    program = emitted.program
    inputs = list(_inputs(program))
    if list(program.body[: len(inputs)]) == inputs:
        return emitted
    first = tuple(node.replace(ring=LOAD_QUEUE) for node in inputs)
    moved = set(map(id, inputs))
    rest = (node for node in program.body if id(node) not in moved)
    return replace(emitted, program=program.with_body((*first, *rest)))


def brought_in_order(emitted: Emitted, synchronised: Program, kinds: Container[str]) -> Emitted:
    """The same with such tensors among the weights, layer by layer, if they wait for nothing; as it was without any.

    `synchronised` is its program with waits.
    """
    program = emitted.program
    pairs = zip(program.body, synchronised.body, strict=True)
    body = tuple(_among_weights(node, waiting, program, kinds) for node, waiting in pairs)
    return emitted if body == program.body else replace(emitted, program=program.with_body(body))


def gathers_apart(emitted: Emitted) -> Emitted:
    """The same with gathers in a queue that no weights wait in, while positions are found; as it was without any."""
    body = tuple(
        node.replace(ring=MOVE_QUEUE) if isinstance(node, DmaGather) else node for node in emitted.program.body
    )
    return emitted if body == emitted.program.body else replace(emitted, program=emitted.program.with_body(body))


def _among_weights(node: Node, waiting: Node, program: Program, kinds: Container[str]) -> Node:
    """A transfer by the queue that goes first, if it waits for nothing, as one of weights."""
    if not isinstance(node, DmaCopy) or not isinstance(waiting, DmaCopy) or waiting.waits:
        return node
    is_among = isinstance(node.source, DramTile) and program.tensors[node.source.tensor].kind in kinds
    return node.replace(ring=WEIGHTS_QUEUE) if is_among and node.ring == LOAD_QUEUE else node


def _inputs(program: Program) -> Iterator[DmaCopy]:
    """Transfers of inputs, before which there are others alone, and none into the same place."""
    written = _Written()
    for node in takewhile(_begins, program.body):
        target = node.result if isinstance(node, Memset) else node.target if isinstance(node, DmaCopy) else None
        if isinstance(node, DmaCopy) and isinstance(target, Tile) and isinstance(node.source, DramTile):
            is_input = program.tensors[node.source.tensor].kind == "input"
            if is_input and not written.meets(target):
                yield node
        if isinstance(target, Tile):
            written.add(target)


def _begins(node: Node) -> bool:
    """Whether what comes after it may still be the first thing that is done: it reads nothing that others write."""
    return isinstance(node, Memset) or (isinstance(node, DmaCopy) and isinstance(node.source, DramTile))


class _Written:
    """Bytes that were written, in whichever partition, as ranges of each memory: an input may come in thousands."""

    def __init__(self) -> None:
        self.ranges: dict[str, list[tuple[int, int]]] = {}  # apart from each other, in order

    def meets(self, tile: Tile) -> bool:
        """Whether some byte of the tile may be among them."""
        first, last = self._among(tile)
        return first < last

    def add(self, tile: Tile) -> None:
        """The tile's bytes, too."""
        first, last = self._among(tile)
        ranges = self.ranges.setdefault(tile.space, [])
        every = [_bytes(tile), *ranges[first:last]]
        ranges[first:last] = [(min(low for low, _ in every), max(high for _, high in every))]

    def _among(self, tile: Tile) -> tuple[int, int]:
        """Which of the ranges the tile's bytes meet, from the first to before the last."""
        ranges, (low, high) = self.ranges.get(tile.space, []), _bytes(tile)
        return bisect_right(ranges, low, key=lambda each: each[1]), bisect_left(ranges, high, key=lambda each: each[0])


def _bytes(tile: Tile) -> tuple[int, int]:
    low, high = tile.offset.span(())
    return low, high + tile.extent_bytes
