"""rows_in_order: arithmetic on rows that several axes count, as heads of channels, on what was moved in their order.

Engines take a result's partitions one after the other; two axes that count them would have to be one.
"""

from dataclasses import replace

from tvm_neuron.codegen.passes.spread_rows import counted_values
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear, counts
from tvm_neuron.schedule.tensor import Tensor


def rows_in_order(block: Block, dim: int) -> tuple[dict[Block, int], Block] | None:
    """Moves, each with its result's dimension of rows, and the block by one axis along dimension `dim` of its own.

    None where nothing is to be done, and where nothing can: the axes count a part of the dimension, or are values, or
    places of a constant.
    """
    out_maps = linear_indices(block.index)
    if block.combine or isinstance(block.expr, Load | Num) or out_maps is None or len(out_maps[dim].terms) < 2:
        return None
    rows = out_maps[dim]
    are_values = not rows.terms.keys().isdisjoint(counted_values(block.expr))
    if are_values or rows.const or counts(rows.terms) != block.output.shape[dim]:
        return None
    row = Axis("row", block.output.shape[dim])
    moves: dict[Load, Block] = {}
    changed: dict[Load, Load] = {}
    for load in block.loads():
        if rows.terms.keys().isdisjoint(axes_of(load)) or load in changed:
            continue
        in_order = _in_order(load, rows, row)
        if in_order is None and load.tensor.value is not None:
            return None
        if in_order is None:
            moves[load] = moved = _move(block, load, out_maps)
            in_order = Load(moved.output, tuple(_at(out_maps, d, dim, row) for d in _dims(load, out_maps)))
        changed[load] = in_order

    def leaf(part: Num | Index | Load) -> Expr:
        return changed.get(part, part) if isinstance(part, Load) else part

    axes = (*(axis for axis in block.axes if axis not in rows.terms), row)
    index = tuple(_at(out_maps, d, dim, row) for d in range(len(out_maps)))
    found = {moved: _dims(load, out_maps).index(dim) for load, moved in moves.items()}
    return found, replace(block, axes=axes, index=index, expr=rewrite(block.expr, leaf))


def _in_order(load: Load, rows: Linear, row: Axis) -> Load | None:
    """A load by one axis for all rows, if it counts them as they are counted."""
    maps = linear_indices(load.indices)
    if maps is None:
        return None
    indices: list[Expr] = []
    for index, part in zip(load.indices, maps, strict=True):
        mine = {axis: step for axis, step in part.terms.items() if axis in rows.terms}
        if not mine:
            indices.append(index)
            continue
        step = mine.get(next(axis for axis, count in rows.terms.items() if count == 1), 0)
        if not step or mine != {axis: step * count for axis, count in rows.terms.items()}:
            return None
        rest = {axis: by for axis, by in part.terms.items() if axis not in rows.terms}
        indices.append(Linear(part.const, {**rest, row: step}).index())
    return Load(load.tensor, tuple(indices))


def _move(block: Block, load: Load, out_maps: tuple[Linear, ...]) -> Block:
    """What a load reads, where the result has it."""
    axes = {axis: Axis(axis.name, axis.extent) for axis in block.axes if axis in set(axes_of(load))}
    by: dict[Axis, Expr] = {axis: Index(new) for axis, new in axes.items()}
    dims = _dims(load, out_maps)
    shape = tuple(block.output.shape[d] for d in dims)
    moved = Tensor(f"{load.tensor.name}.rows", shape, load.tensor.dtype)
    index = tuple(replace_axes(block.index[d], by) for d in dims)
    return Block(block.origin, (*axes.values(),), moved, index, replace_axes(load, by))


def _dims(load: Load, out_maps: tuple[Linear, ...]) -> list[int]:
    """The dimensions of a result along which a load changes."""
    used = set(axes_of(load))
    return [d for d, part in enumerate(out_maps) if not used.isdisjoint(part.terms)]


def _at(out_maps: tuple[Linear, ...], d: int, dim: int, row: Axis) -> Expr:
    return Index(row) if d == dim else out_maps[d].index()
