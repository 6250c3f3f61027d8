"""separate_parts: what products read in parts (queries, keys and values of one projection) is a tensor for each part.

A part that begins amid the partitions would have to be moved to where the array meets it with the other operand.
Computed by itself, it begins on the first one. Parts of whole columns of the array are no more work than all of them
together, others take some columns more, and any move takes longer than that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear, linear
from tvm_neuron.schedule.roles import gathered, is_constant_contraction, product_factors
from tvm_neuron.schedule.tensor import Tensor

Positions = tuple[int, ...]


def separate_parts(graph: Graph) -> None:
    """Cuts contractions, with the arithmetic on their results, into the parts of their output channels that are read.

    Where a product reads one of them, be it after moves and arithmetic, and no two overlap.
    """
    for tensor in list(graph.tensors()):
        readers = graph.readers(tensor)
        for dim, extent in enumerate(tensor.shape):
            parts = _parts(readers, tensor, dim) if extent > 1 else None
            chain = _chain(graph, tensor, dim) if parts else None
            if parts and chain and any(_reaches_product(graph, reader, set()) for reader in readers):
                _separate(graph, chain, parts)
                break


@dataclass(frozen=True)
class _Link:
    """A block, and the axis that its output's dimension `dim` follows from 0 on."""

    block: Block
    dim: int
    axis: Axis


def _chain(graph: Graph, tensor: Tensor, dim: int) -> list[_Link] | None:
    """The blocks from that which writes the tensor back to a contraction, each all that reads the one before it."""
    found: list[_Link] = []
    while True:
        writers = graph.writers(tensor)
        if len(writers) != 1 or tensor.kind != "temp" or (found and len(graph.readers(tensor)) > 1):
            return None
        (block,) = writers
        axis = _plain(block.index[dim])
        varying = dict.fromkeys(load for load in block.loads() if load.tensor.value is None)
        if axis is None or gathered(block) or len(varying) != 1 or not _is_cut(block, axis):
            return None
        found.append(_Link(block, dim, axis))
        (load,) = varying
        if is_constant_contraction(block):
            return found if axis not in set(axes_of(load)) else None
        along = [d for d, index in enumerate(load.indices) if axis in set(axes_of(index))]
        if block.combine or len(along) != 1 or _plain(load.indices[along[0]]) is not axis:
            return None
        tensor, dim = load.tensor, along[0]


def _plain(index: Expr) -> Axis | None:
    """The axis that is the whole index."""
    part = linear(index) if linear_indices((index,)) else Linear(1)
    return next(iter(part.terms)) if not part.const and list(part.terms.values()) == [1] else None


def _is_cut(block: Block, axis: Axis) -> bool:
    """Whether the block can follow some positions of the axis only: it is nothing but the index of some dimensions."""
    inside = [index for load in block.loads() for index in load.indices if axis in set(axes_of(index))]
    plain = sum(1 for index in (*block.index, *inside) if _plain(index) is axis)
    named = sum(found is axis for part in (*block.index, block.expr) for found in axes_of(part))
    return plain == named == len(inside) + 1


def _parts(readers: Sequence[Block], tensor: Tensor, dim: int) -> Mapping[Positions, list[Load]] | None:
    """The loads of the tensor by the positions of the dimension that they cover; None if these overlap or are all."""
    found: dict[Positions, list[Load]] = {}
    for reader in readers:
        for load in reader.loads():
            if load.tensor is tensor:
                maps = linear_indices(load.indices)
                if maps is None or gathered(reader):
                    return None
                found.setdefault(_positions(maps[dim]), []).append(load)
    every = [position for positions in found for position in positions]
    return found if len(found) > 1 and len(set(every)) == len(every) else None


def _positions(part: Linear) -> Positions:
    """All values of the index, its axes counted in the order of their steps."""
    axes = _outermost_first(part)
    return tuple(np.broadcast_to(evaluate(part.expr(), axes), [axis.extent for axis in axes]).ravel().tolist())


def _outermost_first(part: Linear) -> list[Axis]:
    return sorted(part.terms, key=lambda axis: -part.terms[axis])


def _reaches_product(graph: Graph, block: Block, seen: set[Block]) -> bool:
    if product_factors(block):
        return True
    if block.combine or block in seen:
        return False
    seen.add(block)
    return any(_reaches_product(graph, reader, seen) for reader in graph.readers(block.output))


def _separate(graph: Graph, chain: Sequence[_Link], parts: Mapping[Positions, list[Load]]) -> None:
    by: dict[Load, Load] = {}
    pieces: dict[Block, list[Block]] = {link.block: [] for link in chain}
    for positions, loads in parts.items():
        tensors = {link.block.output: _part(link, positions) for link in chain}
        for link in chain:
            pieces[link.block].append(_piece(link, positions, tensors))
        for load in loads:
            indices = list(load.indices)
            indices[chain[0].dim] = _counted(linear(indices[chain[0].dim]))
            by[load] = Load(tensors[load.tensor], tuple(indices))

    def leaf(found: Num | Index | Load) -> Expr:
        return by.get(found, found) if isinstance(found, Load) else found

    for reader in graph.readers(chain[0].block.output):
        graph.replace(reader, reader.with_expr(rewrite(reader.expr, leaf)))
    for block, others in pieces.items():
        graph.replace(block, *others)


def _part(link: _Link, positions: Positions) -> Tensor:
    tensor = link.block.output
    shape = tuple(len(positions) if d == link.dim else extent for d, extent in enumerate(tensor.shape))
    return Tensor(f"{tensor.name}.from{positions[0]}", shape, tensor.dtype)


def _counted(part: Linear) -> Expr:
    """The place of a position among all that the index covers."""
    terms: dict[Axis, int] = {}
    for axis in reversed(_outermost_first(part)):
        terms[axis] = prod(other.extent for other in terms)
    return Linear(0, terms).expr()


def _piece(link: _Link, positions: Positions, tensors: Mapping[Tensor, Tensor]) -> Block:
    """The block at some positions of its axis, constants along it being those of these positions."""
    block, axis = link.block, Axis(link.axis.name, len(positions))
    chosen = slice(positions[0], positions[-1] + 1) if _is_range(positions) else np.array(positions)

    def leaf(found: Num | Index | Load) -> Expr:
        if not isinstance(found, Load) or found.tensor.value is None:
            part = tensors.get(found.tensor) if isinstance(found, Load) else None
            return Load(part, found.indices) if part and isinstance(found, Load) else found
        along = [d for d, index in enumerate(found.indices) if _plain(index) is link.axis]
        if not along:
            return found
        value = found.tensor.value[(*[slice(None)] * along[0], chosen)]
        return Load(replace(found.tensor, shape=value.shape, value=value), found.indices)

    by: dict[Axis, Expr] = {link.axis: Index(axis)}
    return replace(
        block,
        axes=tuple(axis if old is link.axis else old for old in block.axes),
        output=tensors[block.output],
        index=tuple(replace_axes(part, by) for part in block.index),
        expr=replace_axes(rewrite(block.expr, leaf), by),
    )


def _is_range(positions: Positions) -> bool:
    return positions == tuple(range(positions[0], positions[-1] + 1))
