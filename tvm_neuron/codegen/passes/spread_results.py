"""spread_results: a long row of results, as the scores of a vocabulary, goes to device memory from all partitions.

A product with weights leaves its first 128 results on the partitions, then the next ones beside them. One of a single
row would have to be turned, chunk by chunk, to be stored in order. With its results in another order, which weights
come in anyway, each partition holds some that follow each other.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import plain_axes
from tvm_neuron.codegen.passes.spread_rows import counted_values
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, every_load, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_LEAST = 4 * PARTITIONS
"""Elements of a row: fewer chunks are turned in less time than a descriptor for each partition takes."""


def spread_results(graph: Graph) -> None:
    """Orders what products with weights, and arithmetic on them, leave of such outputs."""
    for output in graph.outputs:
        dim = _row(output)
        if dim is not None and not graph.readers(output) and (chain := _chain(graph, output, dim)):
            _order(graph, chain, output, dim)


def _row(output: Tensor) -> int | None:
    """The one dimension of more than an element, if it is long."""
    long = [d for d, extent in enumerate(output.shape) if extent > 1]
    return long[0] if len(long) == 1 and output.elems >= _LEAST else None


def _chain(graph: Graph, output: Tensor, dim: int) -> list[Block] | None:
    """The blocks from a product with weights to the output, the last one first; None if something else makes it."""
    found: list[Block] = []
    tensor, row = output, dim
    while True:
        writers = graph.writers(tensor)
        if len(writers) != 1 or (found and graph.readers(tensor) != [found[-1]]):
            return None
        (block,) = writers
        axis = _counting(block.index[row], tensor.shape[row])
        if axis is None or axis in counted_values(block.expr) or gathered(block) is not None:
            return None
        read = [load for load in every_load(block.expr) if load.tensor.value is None and axis in axes_of(load)]
        found.append(block)
        if is_constant_contraction(block) and not read:
            return found
        places = {(load.tensor, load.indices) for load in read}
        if block.combine or len(places) != 1:
            return None
        ((tensor, indices),) = places
        rows = [d for d, index in enumerate(indices) if _counting(index, tensor.shape[d]) == axis]
        if tensor.kind != "temp" or len(rows) != 1 or tensor.shape[rows[0]] != tensor.elems:
            return None
        row = rows[0]


def _counting(index: Expr, extent: int) -> Axis | None:
    """The axis that counts a dimension from its first element to the last."""
    (axis,) = plain_axes((index,)) or (None,)
    return axis if axis is not None and axis.extent == extent else None


def _order(graph: Graph, chain: list[Block], output: Tensor, dim: int) -> None:
    """Has the chain make its row in another order, and what it makes moved to the output."""
    extent = output.shape[dim]
    beside = -(-extent // PARTITIONS)
    partitions, rest = divmod(extent, beside)
    count = np.arange(beside * PARTITIONS)
    order = np.minimum(count % PARTITIONS * beside + count // PARTITIONS, extent)  # `extent`: none of them
    made: dict[Tensor, Tensor] = {}
    for block in chain:
        name = f"{output.name}.ordered" if block.output is output else block.output.name
        shape = tuple(len(order) if n == extent else n for n in block.output.shape)
        made[block.output] = replace(block.output, name=name, kind="temp", shape=shape)
    for block in chain:
        ordered = _ordered(block, made, order)
        moves = [
            _move(block, made[output], output, dim, beside, first, size)
            for first, size in ((0, (partitions, beside)), (partitions, (1, rest)))
            if block.output is output and size[1]
        ]
        graph.replace(block, ordered, *moves)


def _ordered(block: Block, made: dict[Tensor, Tensor], order: NDArray[Any]) -> Block:
    """The block with its row in that order."""
    tensor = made[block.output]
    (axis,) = {axis for part in block.index for axis in axes_of(part) if axis.extent == block.output.elems}
    longer = replace(axis, extent=len(order))

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load):
            return part
        if part.tensor.value is not None and axis in axes_of(part):
            return _known(part, axis, order)
        return replace(part, tensor=made.get(part.tensor, part.tensor))

    by: dict[Axis, Expr] = {axis: Index(longer)}
    return replace(
        block,
        axes=tuple(longer if each is axis else each for each in block.axes),
        output=tensor,
        index=tuple(replace_axes(part, by) for part in block.index),
        expr=replace_axes(rewrite(block.expr, leaf), by),
    )


def _known(load: Load, axis: Axis, order: NDArray[Any]) -> Load:
    """What is read of a constant, in that order along the axis, and 0 where the order has none of it."""
    axes = [axis, *(each for each in dict.fromkeys(axes_of(load)) if each is not axis)]
    value = np.broadcast_to(evaluate(load, axes), [each.extent for each in axes])
    value = value[np.minimum(order, axis.extent - 1)]  # all weights of a vocabulary: copied once
    value[order == axis.extent] = 0
    table = Tensor(f"{load.tensor.name}.ordered", value.shape, load.tensor.dtype, value=value)
    return Load(table, tuple(map(Index, axes)))


def _move(
    block: Block, source: Tensor, output: Tensor, dim: int, beside: int, first: int, size: tuple[int, int]
) -> Block:
    """From the partitions `first` and on, so many with so many elements each."""
    partition, column = Axis("p", size[0]), Axis("j", size[1])
    there = Linear(first, {partition: 1, column: PARTITIONS}).expr()
    here = Linear(first * beside, {partition: beside, column: 1}).expr()
    index, indices = [[Linear(0).expr()] * len(tensor.shape) for tensor in (output, source)]
    index[dim], indices[dim] = here, there
    return canonical(Block(block.origin, (partition, column), output, tuple(index), Load(source, tuple(indices))))
