"""running_sums: products with a triangle of ones, which cumulative sums were made of, as recurrences."""

from dataclasses import replace

import numpy as np

from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import SCAN, Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, factors, is_forward


def running_sums(graph: Graph) -> bool:
    """Replaces all of them, those that leave out the element itself too; whether there were any."""
    every = [(block, _as_scan(block)) for block in graph.blocks]
    for block, found in every:
        if found:
            graph.replace(block, *found)
    return any(found for _, found in every)


def _as_scan(block: Block) -> list[Block]:
    """The recurrence, and where the element itself is left out the zeros at its start; none if it is no such sum."""
    data = data_factor(block)
    weights = [part for part in factors(block.expr) if part is not data]
    summed = [axis for axis in block.reduction if axis.extent > 1]
    if data is None or block.init or len(weights) != 1 or len(summed) != 1 or not is_forward(data):
        return []
    (counted,) = summed
    along = _other_axis(weights[0], counted)
    if along is None or along.extent != counted.extent or along in axes_of(data) or along not in block.spatial:
        return []
    if not _counts_alone(data, counted) or all(along in axes_of(part) for part in block.index):
        return []  # no dimension is left to lie on the partitions
    values = np.broadcast_to(evaluate(weights[0], (counted, along)), (counted.extent, along.extent))
    ones = np.ones(values.shape, values.dtype)
    if np.array_equal(values, np.triu(ones)):
        return [_scan(block, data, counted, along, 0)]
    if np.array_equal(values, np.triu(ones, 1)) and counted.extent > 2:
        axes = tuple(axis for axis in block.spatial if axis is not along)
        index = tuple(replace_axes(part, {along: Num(0)}) for part in block.index)
        first = replace(block, axes=axes, index=index, expr=Num(0.0), combine="")
        return [first, _scan(block, data, counted, along, 1)]
    return []


def _other_axis(weights: Expr, counted: Axis) -> Axis | None:
    """The one axis besides the summed one along which a constant changes."""
    found = [axis for axis in dict.fromkeys(axes_of(weights)) if axis.extent > 1]
    others = [axis for axis in found if axis is not counted]
    is_plain = isinstance(weights, Load) and linear_indices(weights.indices) is not None
    return others[0] if is_plain and len(found) == 2 and len(others) == 1 else None


def _counts_alone(data: Load, counted: Axis) -> bool:
    """Whether the axis moves along one dimension of the data, in which no other one does."""
    moved = [part for part in linear_indices(data.indices) or () if counted in part.terms]
    return len(moved) == 1 and len(moved[0].terms) == 1


def _scan(block: Block, data: Load, counted: Axis, along: Axis, skipped: int) -> Block:
    """The block as a recurrence which begins at so many places from the start of `along`."""
    own, other = (replace(axis, extent=axis.extent - skipped) for axis in (counted, along))
    place: dict[Axis, Expr] = {counted: Index(own), along: Linear(skipped, {other: 1}).expr()}
    load = replace_axes(data, place)
    expr = Apply(SCAN, (Num(1.0), load, Num(0.0), Index(other), Index(own)))
    axes = tuple({counted: own, along: other}.get(axis, axis) for axis in block.axes if axis in block.spatial)
    index = tuple(replace_axes(part, place) for part in block.index)
    return replace(block, axes=(*axes, own), index=index, expr=expr)
