"""canonical: every index of a block as a sum of axes, splitting axes where a div or mod asks for it."""

from dataclasses import replace
from itertools import permutations

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear, NotLinearError, SplitAxisError, linear


def canonical(block: Block) -> Block:
    """The block with linear indices wherever it can be had; other indices stay as they are (to be enumerated)."""
    while True:
        try:
            index = tuple(_linear_expr(part, strict=True) for part in block.index)
            expr = rewrite(block.expr, _linear_load)
            return replace(block, index=index, expr=expr)
        except SplitAxisError as split:
            block = split_axis(block, split.axis, split.inner)


def split_axis(block: Block, axis: Axis, inner: int) -> Block:
    """The block with `axis` as two: `high * inner + low`."""
    high = Axis(f"{axis.name}o", axis.extent // inner, axis.is_reduction)
    low = Axis(f"{axis.name}i", inner, axis.is_reduction)
    by: dict[Axis, Expr] = {axis: Linear(0, {high: inner, low: 1}).expr()}
    at = block.axes.index(axis)
    return replace(
        block,
        axes=(*block.axes[:at], high, low, *block.axes[at + 1 :]),
        index=tuple(replace_axes(part, by) for part in block.index),
        expr=replace_axes(block.expr, by),
    )


def united(block: Block) -> Block:
    """The block with one axis in the place of several that only count together, as those that were split do."""
    every = [linear_indices(block.index), *(linear_indices(load.indices) for load in block.loads())]
    if any(maps is None for maps in every):
        return block
    parts = [part for maps in every for part in maps or ()]
    for high, low in permutations(block.axes, 2):
        is_alike = high.is_reduction == low.is_reduction and any(low in part.terms for part in parts)
        if is_alike and all(part.terms.get(high, 0) == low.extent * part.terms.get(low, 0) for part in parts):
            both = Axis(f"{high.name}{low.name}", high.extent * low.extent, low.is_reduction)
            by: dict[Axis, Expr] = {high: Num(0), low: Index(both)}
            axes = tuple(both if axis is low else axis for axis in block.axes if axis is not high)
            index = tuple(replace_axes(part, by) for part in block.index)
            return united(canonical(replace(block, axes=axes, index=index, expr=replace_axes(block.expr, by))))
    return block


def _linear_load(leaf: Num | Index | Load) -> Expr:
    if isinstance(leaf, Load):
        return Load(leaf.tensor, tuple(_linear_expr(index, strict=False) for index in leaf.indices))
    return leaf


def _linear_expr(index: Expr, strict: bool) -> Expr:
    try:
        found = linear(index)
    except NotLinearError:
        if strict:
            raise
        return index
    return found.expr() if isinstance(index, Apply) else Num(found.const) if not found.terms else index
