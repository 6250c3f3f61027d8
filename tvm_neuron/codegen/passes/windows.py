"""split_windows: the maximum of a large window is that along one dimension, of these that along the other."""

from dataclasses import replace

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

_WORTH = 0.5  # of the elements that are looked at: a second nest and a tensor between have their price


def split_windows(graph: Graph) -> None:
    """Cuts maxima and minima of windows in two dimensions in two, where that looks at half of the elements at most.

    Windows of 13 x 13 look at 26 elements for each result instead of 169.
    """
    for block in graph.blocks:
        if found := _split(block):
            graph.replace(block, *found)


def _split(block: Block) -> tuple[Block, Block] | None:
    data = block.expr
    if block.combine not in ("max", "min") or not isinstance(data, Load) or len(block.reduction) != 2:
        return None
    maps = linear_indices(data.indices)
    at = [_dim_of(axis, maps or ()) for axis in block.reduction]
    if maps is None or -1 in at or not _is_plain(maps, at, block):
        return None
    (rows, columns), (down, across) = at, block.reduction
    (height,), (width,) = ([axis for axis in maps[d].terms if not axis.is_reduction] for d in (rows, columns))
    low, high = maps[rows].span
    line = Axis(f"{height.name}.rows", high - low + 1)
    whole = height.extent * down.extent * width.extent * across.extent
    if (line.extent * across.extent + height.extent * down.extent) * width.extent > _WORTH * whole:
        return None
    places = [Linear(0, {width: 1} if d == columns else part.terms) for d, part in enumerate(maps)]  # in `between`
    between = Tensor(f"{block.output.name}.rows", tuple(part.span[1] + 1 for part in places), data.tensor.dtype)
    own = {axis: Axis(axis.name, axis.extent, axis.is_reduction) for axis in (*block.spatial, across)} | {height: line}

    def moved(part: Linear) -> Expr:
        return Linear(part.const, {own[axis]: step for axis, step in part.terms.items()}).expr()

    first = Block(
        origin=block.origin,
        axes=tuple(own[axis] for axis in block.axes if axis is not down),
        output=between,
        index=tuple(Index(line) if d == rows else moved(part) for d, part in enumerate(places)),
        expr=Load(data.tensor, tuple(moved(Linear(low, {height: 1}) if d == rows else m) for d, m in enumerate(maps))),
        combine=block.combine,
        init=block.init,
    )
    then = Load(between, tuple(part.expr() for part in places))
    return first, replace(block, axes=tuple(axis for axis in block.axes if axis is not across), expr=then)


def _dim_of(axis: Axis, maps: tuple[Linear, ...]) -> int:
    """The one dimension along which an axis moves, beside a single other axis; -1 if there is none."""
    found = [d for d, part in enumerate(maps) if axis in part.terms]
    return found[0] if len(found) == 1 and len(maps[found[0]].terms) == 2 else -1


def _is_plain(maps: tuple[Linear, ...], windowed: list[int], block: Block) -> bool:
    """Whether windows move forward along two dimensions, and the others are whole: from 0, one axis, step 1."""
    used = [axis for part in maps for axis in part.terms]
    if len(set(windowed)) != 2 or len(set(used)) != len(used) or set(used) != {a for a in block.axes if a.extent > 1}:
        return False
    others = [part for d, part in enumerate(maps) if d not in windowed]
    if not all(not part.const and len(part.terms) <= 1 and set(part.terms.values()) <= {1} for part in others):
        return False
    return all(step > 0 for part in maps for step in part.terms.values())
