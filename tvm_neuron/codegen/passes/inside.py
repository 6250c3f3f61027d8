"""reduced_inside: what is reduced along partitions and within them becomes one within each, and one of these."""

from dataclasses import replace
from math import prod

from tvm_neuron.schedule.expr import Axis, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.linear import Linear, counts
from tvm_neuron.schedule.tensor import Tensor

_NEUTRAL = {"add": 0.0, "multiply": 1.0}  # the first of all; a maximum or minimum may begin with any number twice


def reduced_inside(block: Block, load: Load, maps: tuple[Linear, ...], dim: int) -> tuple[Block, Block] | None:
    """Both reductions of what lies with `dim` on the partitions; None if there is nothing to reduce within them.

    Those partitions are all reduced, or those of each group, as channels of a norm's groups are. Nor are there two
    where more of them are busy with what is not reduced there.
    """
    here = maps[dim]
    across = next((axis for axis in here.terms if axis.is_reduction), None)
    if across is None:
        return None
    inner = [axis for axis in block.reduction if axis is not across]
    groups = [axis for axis in here.terms if axis is not across]
    kept = [axis for axis in block.spatial if axis not in groups and any(axis in part.terms for part in maps)]
    is_counted = not here.const and here.terms[across] == 1 and counts(here.terms) > 0
    if not is_counted or any(axis.is_reduction for axis in groups):
        return None
    if any(axis in part.terms for d, part in enumerate(maps) if d != dim for axis in here.terms):
        return None
    channel = Axis(across.name, prod(axis.extent for axis in here.terms))
    if prod(axis.extent for axis in inner) == 1 or channel.extent < max((axis.extent for axis in kept), default=1):
        return None
    if block.init != _NEUTRAL.get(block.combine, block.init):
        return None
    dtype = "float32" if "float" in block.output.dtype else block.output.dtype
    parts = Tensor(f"{block.output.name}.inside", (channel.extent, *(axis.extent for axis in kept)), dtype)
    mine = {axis: Axis(axis.name, axis.extent) for axis in kept}
    own = (channel, *mine.values())
    read = replace_axes(load, {axis: Index(each) for axis, each in mine.items()})
    assert isinstance(read, Load)
    read = replace(read, indices=(*read.indices[:dim], Index(channel), *read.indices[dim + 1 :]))
    inside = Block(block.origin, (*own, *inner), parts, tuple(map(Index, own)), read, block.combine, block.init)
    rest = tuple(axis for axis in block.axes if axis not in inner)
    return inside, replace(block, axes=rest, expr=Load(parts, (here.expr(), *map(Index, kept))))
