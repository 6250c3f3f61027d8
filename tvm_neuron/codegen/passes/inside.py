"""reduced_inside: what is reduced along partitions and within them becomes one within each, and one of these."""

from dataclasses import replace
from math import prod

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

_NEUTRAL = {"add": 0.0, "multiply": 1.0}  # the first of all; a maximum or minimum may begin with any number twice


def reduced_inside(block: Block, load: Load, maps: tuple[Linear, ...], dim: int) -> tuple[Block, Block] | None:
    """Both reductions of what lies with `dim` on the partitions; None if there is nothing to reduce within them.

    Nor are there two where more of them are busy with what is not reduced there.
    """
    here = maps[dim]
    (across, step), *others = here.terms.items()
    inner = [axis for axis in block.reduction if axis is not across]
    kept = [axis for axis in block.spatial if any(axis in part.terms for part in maps)]
    is_alone = not others and step == 1 and not here.const and across.is_reduction
    if not is_alone or any(across in part.terms for d, part in enumerate(maps) if d != dim):
        return None
    if prod(axis.extent for axis in inner) == 1 or across.extent < max((axis.extent for axis in kept), default=1):
        return None
    if block.init != _NEUTRAL.get(block.combine, block.init):
        return None
    dtype = "float32" if "float" in block.output.dtype else block.output.dtype
    parts = Tensor(f"{block.output.name}.inside", (across.extent, *(axis.extent for axis in kept)), dtype)
    own = {axis: Axis(axis.name, axis.extent) for axis in (across, *kept)}
    by: dict[Axis, Expr] = {axis: Index(mine) for axis, mine in own.items()}
    axes = (*own.values(), *inner)
    inside = Block(block.origin, axes, parts, tuple(by.values()), replace_axes(load, by), block.combine, block.init)
    rest = tuple(axis for axis in block.axes if axis not in inner)
    return inside, replace(block, axes=rest, expr=Load(parts, tuple(map(Index, (across, *kept)))))
