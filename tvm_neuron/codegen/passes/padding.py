"""padding: sums read through zero padding along partitions; permuted channels are padded in their original order."""

from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import inverse, moved_load
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import linear
from tvm_neuron.schedule.roles import is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor


def sum_through_padding(graph: Graph) -> None:
    """A sum over a window of a zero-padded tensor, the padding being where no output axis strides, skips the padding.

    The sum becomes one of products with a 0/1 mask: LRN's window over channels, which no engine can pad in place.
    """
    for tensor in list(graph.tensors()):
        parts = padded_move(graph, tensor, fill=0.0)
        readers = graph.readers(tensor)
        if parts is None or not readers or tensor.kind == "output":
            continue
        load = moved_load(parts)
        assert load is not None
        changed = [_skip_padding(reader, parts, load) for reader in readers]
        if any(block is None for block in changed):
            continue
        for reader, block in zip(readers, changed, strict=True):
            if block is not None:
                graph.replace(reader, block)
        for writer in graph.writers(tensor):
            graph.replace(writer)


def padded_move(graph: Graph, tensor: Tensor, fill: float | None) -> Block | None:
    """The move into the middle of a tensor whose other parts are all filled with one number (`fill`, if given)."""
    writers = graph.writers(tensor)
    moves = [block for block in writers if moved_load(block) is not None]
    fills = {block.expr.value for block in writers if isinstance(block.expr, Num)}
    is_padded = len(moves) == 1 and len(fills) == 1 and all(isinstance(b.expr, Num) for b in writers if b not in moves)
    return moves[0] if is_padded and (fill is None or fills == {fill}) else None


def _skip_padding(reader: Block, move: Block, source: Load) -> Block | None:
    if reader.combine != "add" or not isinstance(reader.expr, Load):
        return None
    maps, into = linear_indices(reader.expr.indices), linear_indices(move.index)
    if maps is None or into is None or any(len(m.terms) > 1 for m in into):
        return None
    shape = move.output.shape
    padded = [d for d, m in enumerate(into) if m.const or sum(a.extent - 1 for a in m.terms) + 1 < shape[d]]
    axes = tuple(dict.fromkeys(axis for d in padded for axis in maps[d].terms))
    if len(padded) != 1 or not any(axis.is_reduction for axis in axes):
        return None
    (dim,) = padded
    if dim != len(shape) - 3 or any(extent > 1 for extent in shape[1:dim]):
        return None  # not the channels: along rows and columns an engine pads in place
    window = [axis for axis in axes if not axis.is_reduction]
    if any(axis in m.terms for axis in window for d, m in enumerate(maps) if d != dim) or len(window) != 1:
        return None
    if maps[dim].terms[window[0]] != 1:
        return None
    inner = next(iter(into[dim].terms))
    position = evaluate(maps[dim].expr(), axes)
    inside = (position >= into[dim].const) & (position < into[dim].const + inner.extent)
    mask = Tensor("window", tuple(axis.extent for axis in axes), "float32", value=inside.astype(np.float32))
    by = inverse(move, reader.expr.indices)
    data = Load(source.tensor, tuple(replace_axes(index, by) for index in source.indices))
    product = Apply("multiply", (data, Load(mask, tuple(Index(axis) for axis in axes))))
    return canonical(reader.with_expr(product))


def pad_in_order(graph: Graph) -> None:
    """A tensor padded after its channels were permuted is padded unpermuted; its readers (contractions) permute."""
    for tensor in list(graph.tensors()):
        move = padded_move(graph, tensor, fill=None)
        if move is None or not all(is_constant_contraction(reader) for reader in graph.readers(tensor)):
            continue
        load = moved_load(move)
        into, source = linear_indices(move.index), linear_indices(load.indices) if load else None
        if into is None or source is None:
            continue
        for dim, part in enumerate(into):
            same = [m for m in source if set(m.terms) == set(part.terms) and m.terms != part.terms]
            is_whole = not part.const and part.span[1] + 1 == tensor.shape[dim]
            if is_whole and len(part.terms) > 1 and len(same) == 1 and not same[0].const:
                _reorder(graph, tensor, dim, move, same[0].expr())
                break


def _reorder(graph: Graph, tensor: Tensor, dim: int, move: Block, order: Expr) -> None:
    def there(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        by: dict[Axis, Expr] = inverse(move, indices)
        return tuple(replace_axes(order, by) if d == dim else index for d, index in enumerate(indices))

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(tensor, there(part.indices)) if isinstance(part, Load) and part.tensor is tensor else part

    readers = graph.readers(tensor)
    changed = [canonical(reader.with_expr(rewrite(reader.expr, leaf))) for reader in readers]
    if any(linear_indices(load.indices) is None for reader in changed for load in reader.loads()):
        return  # permuted more than once: it is carried out
    for reader, other in zip(readers, changed, strict=True):
        graph.replace(reader, other)
    graph.replace(move, _merge_axes(move, dim, order))


def _merge_axes(move: Block, dim: int, order: Expr) -> Block:
    """The move with the axes of `order`, which now count the same way on both sides, as one axis."""
    part, load = linear(order), moved_load(move)
    assert load is not None
    whole = Axis("c", move.output.shape[dim])
    source = tuple(Index(whole) if linear(index).terms == part.terms else index for index in load.indices)
    return replace(
        move,
        axes=(*(axis for axis in move.axes if axis not in part.terms), whole),
        index=tuple(Index(whole) if d == dim else index for d, index in enumerate(move.index)),
        expr=Load(load.tensor, source),
    )
