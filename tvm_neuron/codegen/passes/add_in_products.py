"""add_in_products: terms that are added to a product, and are the same along some of its columns, are summed with it.

Relative positions of image models are two small products, one by the rows and one by the columns of keys. Added to
all scores, they would be spread over the keys, and moved to where scores lie. As rows of the depth they are no work:
[terms of each row, its operand] times [1 where a column is the term's and else 0, the other operand].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate

import numpy as np

from tvm_neuron.codegen.passes.canonical import canonical, split_axis
from tvm_neuron.codegen.passes.moves import can_invert, inverse, is_one_to_one
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear, NotLinearError, SplitAxisError, linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction, product_factors
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class _Term:
    """A term in the axes of the product: `at` are its indices but for dimension `dim`, where it has the column `axis`.

    `writer` makes it for the sum alone, of weights that change along its axis `row` there.
    """

    writer: Block
    row: Axis
    dim: int
    axis: Axis
    at: tuple[Linear, ...]

    @property
    def rows(self) -> int:
        """How many partitions it takes, so that the next one starts where engines reach it."""
        return -(-self.axis.extent // PARTITION_START_STEP) * PARTITION_START_STEP


@dataclass(frozen=True)
class _Sum:
    """A product of `left` and `right`, times `scale`, and the terms: these have rows of the left one.

    It is written as the sum is. `gone` are the blocks that are of no use any more: they make, scale and move what is
    added.
    """

    product: Block
    scale: tuple[Expr, ...]
    left: Load
    right: Load
    depth: Axis
    added: Block
    gone: tuple[Block, ...]
    terms: tuple[_Term, ...]


@dataclass(frozen=True)
class _Addend:
    """What a sum adds up: `writer` makes it, `load` is where in the axes of the sum, and it is times `scale`."""

    writer: Block
    load: Load
    scale: tuple[Expr, ...]


def add_in_products(graph: Graph) -> bool:
    """Sums the terms that products with weights make for one sum alone as rows of its product; whether there are any.

    Weights that make them get rows of zeros, up to where the next ones may begin.
    """
    found: list[_Sum] = []
    for block in reversed(graph.blocks):  # sums of sums first
        if not any(block in each.gone for each in found) and (each := _sum_in(graph, block)) is not None:
            found.append(each)
    for each in found:
        _change(graph, each)
    return bool(found)


def _sum_in(graph: Graph, block: Block) -> _Sum | None:
    """What the block adds up, if it is such a sum."""
    gone: list[Block] = []
    every = _addends(graph, block, block.index, (), gone) if len(_parts(block)[0]) == 2 else None
    products = [each for each in every or () if product_factors(each.writer)]
    terms = [each for each in every or () if each not in products]
    is_each_once = len({each.writer for each in every or ()}) == len(every or ())
    if len(products) != 1 or not is_each_once or not is_one_to_one(products[0].load.indices):
        return None
    made, scale = products[0].writer, products[0].scale
    by = inverse(replace(block, index=products[0].load.indices), made.index)
    index = tuple(replace_axes(part, by) for part in block.index)
    loads = [Load(t.load.tensor, tuple(replace_axes(part, by) for part in t.load.indices)) for t in terms]
    seen, loads = _in_axes(replace(made, index=index), loads)
    depth = [axis for axis in seen.reduction if axis.extent > 1]
    pair = product_factors(seen)
    for left, right in (pair, pair[::-1]) if pair else ():
        found = [_term(term.writer, load, left, right) for load, term in zip(loads, terms, strict=False)]
        kept = tuple(term for term in found if term is not None)
        is_every = len(depth) == 1 and 0 < len(kept) == len(terms)
        if is_every and all(_suits(term, kept[0], left, depth[0]) for term in kept):
            numbers = tuple(part for part in factors(made.expr) if isinstance(part, Num))
            return _Sum(seen, (*numbers, *scale), left, right, depth[0], block, tuple(gone), kept)
    return None


def _addends(
    graph: Graph, block: Block, indices: tuple[Expr, ...], scale: tuple[Expr, ...], gone: list[Block]
) -> list[_Addend] | None:
    """What the block adds up where it writes the element at these indices: products, and terms of weights.

    None if it is anything else. The products, and blocks on the way to all, are added to `gone`.
    """
    parts, numbers = _parts(block)
    if not parts or not can_invert(block):
        return None
    by, found = inverse(block, indices), list[_Addend]()
    for part in parts:
        load, times = Load(part.tensor, tuple(replace_axes(index, by) for index in part.indices)), (*scale, *numbers)
        writer = _writer_for(graph, part.tensor, block)
        if writer is None:
            return None
        if is_constant_contraction(writer) and not times:
            found.append(_Addend(writer, load, times))
            continue
        gone.append(writer)
        if product_factors(writer):
            found.append(_Addend(writer, load, times))
            continue
        others = _addends(graph, writer, load.indices, times, gone)
        if others is None:
            return None
        found += others
    return found


def _parts(block: Block) -> tuple[tuple[Load, ...], tuple[Expr, ...]]:
    """The two loads of run-time tensors that a block adds, or the one that it moves, and the numbers it is times."""
    match block.expr:
        case _ if block.combine:
            return (), ()
        case Apply("add", (Load() as left, Load() as right)):
            return ((left, right), ()) if left.tensor.value is None and right.tensor.value is None else ((), ())
    every = list(factors(block.expr))
    moved = tuple(part for part in every if isinstance(part, Load) and part.tensor.value is None)
    numbers = tuple(part for part in every if part not in moved)
    return ((), ()) if len(moved) != 1 or any(set(axes_of(part)) for part in numbers) else (moved, numbers)


def _in_axes(product: Block, loads: Sequence[Load]) -> tuple[Block, list[Load]]:
    """The product and what is read in its axes with these split where a load asks for it; no loads if that is no help.

    Queries may be counted as one where their rows and columns are read apart.
    """
    every = product
    for load in loads:
        every = every.with_expr(Apply("add", (every.expr, load)))
    while True:
        try:
            for load in every.loads():
                for index in load.indices:
                    linear(index)
            break
        except SplitAxisError as split:
            every = split_axis(every, split.axis, split.inner)
        except NotLinearError:
            return product, []
    every, found = canonical(every), list[Load]()
    for _ in loads:
        assert isinstance(every.expr, Apply)
        rest, last = every.expr.args
        assert isinstance(last, Load)
        every, found = every.with_expr(rest), [last, *found]
    return every, found


def _writer_for(graph: Graph, tensor: Tensor, reader: Block) -> Block | None:
    """What alone makes a tensor for that reader alone."""
    writers = graph.writers(tensor)
    is_alone = tensor.kind == "temp" and len(writers) == 1 and graph.readers(tensor) == [reader]
    return writers[0] if is_alone else None


def _term(writer: Block, load: Load, left: Load, right: Load) -> _Term | None:
    """The term, if it has rows of the left operand, and one axis of the columns of the right one."""
    maps, out_maps, own = linear_indices(load.indices), linear_indices(writer.index), set(axes_of(left))
    if maps is None or out_maps is None:
        return None
    columns = [d for d, part in enumerate(maps) if set(part.terms) - own]
    if len(columns) != 1:
        return None
    (dim,) = columns
    (axis, *others), rows = maps[dim].terms, list(out_maps[dim].terms)
    is_whole = maps[dim] == Linear(0, {axis: 1}) and axis.extent == load.tensor.shape[dim] and not others
    if not is_whole or axis not in set(axes_of(right)) or out_maps[dim] != Linear(0, {rows[0]: 1}):
        return None
    if not all(_can_pad(part, rows[0]) for part in factors(writer.expr)):
        return None
    return _Term(writer, rows[0], dim, axis, (*maps[:dim], *maps[dim + 1 :]))


def _can_pad(factor: Expr, row: Axis) -> bool:
    """Whether a factor can have more rows: weights whose rows are one dimension of theirs, or what has no such rows."""
    if row not in set(axes_of(factor)):
        return True
    maps = linear_indices(factor.indices) if isinstance(factor, Load) else None
    if maps is None or not isinstance(factor, Load) or factor.tensor.value is None:
        return False
    along = [d for d, part in enumerate(maps) if row in part.terms]
    return all(maps[d] == Linear(0, {row: 1}) and factor.tensor.shape[d] == row.extent for d in along)


def _suits(term: _Term, first: _Term, left: Load, depth: Axis) -> bool:
    """Whether a term has each row of the left operand once, as the first one has, and is of its dtype."""
    if term.at != first.at:
        return False
    rows = {axis for axis in axes_of(left) if axis.extent > 1 and axis is not depth}
    is_whole = is_one_to_one(tuple(part.expr() for part in term.at)) and not any(part.const for part in term.at)
    return (
        is_whole
        and rows == {a for part in term.at for a in part.terms}
        and term.writer.output.dtype == left.tensor.dtype
    )


def _change(graph: Graph, found: _Sum) -> None:
    product, added, first = found.product, found.added, found.terms[0]
    starts = list(accumulate((term.rows for term in found.terms), initial=0))
    size = starts[-1] + found.depth.extent
    outer = [extent for d, extent in enumerate(first.writer.output.shape) if d != first.dim]
    columns = list(dict.fromkeys(a for a in axes_of(found.right) if a is not found.depth and a.extent > 1))
    left = Tensor(f"{found.left.tensor.name}.with_terms", (*outer, size), found.left.tensor.dtype)
    right = Tensor(
        f"{found.right.tensor.name}.with_ones", (*(a.extent for a in columns), size), found.right.tensor.dtype
    )
    row_index, column_index = tuple(part.expr() for part in first.at), tuple(map(Index, columns))
    rows = tuple(axis for part in first.at for axis in part.terms)
    # Each in axes of its own: the summed axis of the product is one along which the operands are moved.
    element, depth = Axis("c", found.depth.extent), Axis("k", size, is_reduction=True)
    behind = Linear(starts[-1], {element: 1}).expr()
    by: dict[Axis, Expr] = {found.depth: Index(element)}
    moved = replace_axes(_multiplied((found.left, *found.scale)), by)
    blocks = [
        Block(product.origin, (*rows, element), left, (*row_index, behind), moved),
        *_ones(found, right, tuple(columns), starts),
        Block(product.origin, (*columns, element), right, (*column_index, behind), replace_axes(found.right, by)),
    ]
    pair = (Load(left, (*row_index, Index(depth))), Load(right, (*column_index, Index(depth))))
    axes = (*product.spatial, depth)
    total = replace(product, axes=axes, output=added.output, expr=Apply("multiply", pair))
    graph.replace(added, *map(canonical, (*blocks, total)))
    for block in found.gone:
        graph.replace(block)
    for term, start in zip(found.terms, starts, strict=False):
        graph.replace(term.writer, canonical(_padded(term, left, start)))


def _multiplied(parts: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: Apply("multiply", (left, right)), parts)


def _ones(found: _Sum, right: Tensor, columns: tuple[Axis, ...], starts: list[int]) -> Iterator[Block]:
    """Of each term the rows of the right operand: 1 where a column is the term's, else 0."""
    for term, start in zip(found.terms, starts, strict=False):
        place = Axis("p", term.rows)
        value = np.eye(term.rows, term.axis.extent, dtype=np.float32)
        table = Tensor(f"{right.name}.ones", value.shape, "float32", value=value)
        ones = Load(table, (Index(place), Index(term.axis)))
        index = (*map(Index, columns), Linear(start, {place: 1}).expr())
        yield Block(found.product.origin, (*columns, place), right, index, ones)


def _padded(term: _Term, left: Tensor, start: int) -> Block:
    """What makes a term, into the rows of the left operand from `start` on, with zeros behind it."""
    writer, wide = term.writer, Axis(term.row.name, term.rows)
    by: dict[Axis, Expr] = {term.row: Index(wide)}
    data = data_factor(writer)

    def with_zeros(factor: Expr) -> Expr:
        if not isinstance(factor, Load) or factor is data or term.row not in set(axes_of(factor)):
            return factor
        maps, value = linear_indices(factor.indices), factor.tensor.value
        assert maps is not None
        assert value is not None
        more = [(0, term.rows - term.row.extent if term.row in part.terms else 0) for part in maps]
        padded = np.pad(value, more)
        tensor = Tensor(f"{factor.tensor.name}.padded", padded.shape, factor.tensor.dtype, value=padded)
        return Load(tensor, tuple(replace_axes(index, by) for index in factor.indices))

    expr = _multiplied([with_zeros(factor) for factor in factors(writer.expr)])
    others = tuple(index for d, index in enumerate(writer.index) if d != term.dim)
    axes = tuple(wide if axis is term.row else axis for axis in writer.axes)
    return replace(writer, axes=axes, output=left, index=(*others, Linear(start, {wide: 1}).expr()), expr=expr)
