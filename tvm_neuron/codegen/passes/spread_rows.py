"""spread_rows: a long dimension with little beside it, as a vector has, becomes two: all partitions get a part.

Of [1, 32000], one partition would hold a row of 32,000 elements, or DMA would bring each to a partition of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tvm_neuron.codegen.passes.edges import with_edges
from tvm_neuron.codegen.passes.in_order import ROW
from tvm_neuron.codegen.passes.split_dims import Dim, apply_split
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, axes_of, every_load
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered, is_constant_contraction, product_factors
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_LEAST = 512
"""Elements of a row: fewer take an engine less time than to bring together what is reduced over partitions."""


@dataclass(eq=False)
class _Group:
    """Dimensions that the same axes count, all of them from the first element to the last."""

    dims: set[Dim] = field(default_factory=set)
    axes: set[Axis] = field(default_factory=set)
    is_apart: bool = False  # something takes only a part, or needs them as they are


def spread_rows(graph: Graph, cuts_slices: bool = False) -> bool:
    """Splits such dimensions of all tensors, and says whether there are any.

    What comes from DRAM and goes there is split on its way. If it `cuts_slices`, so is what is made of a part of a
    larger tensor that stays as it is, such as a column: the scores of one class of all boxes.
    """
    factors: dict[Dim, tuple[int, ...]] = {}
    axes: dict[Axis, tuple[int, ...]] = {}
    for group in dict.fromkeys(_groups(graph, cuts_slices).values()):
        if parts := _parts(group):
            factors |= dict.fromkeys(group.dims, parts)
            axes |= dict.fromkeys(group.axes, parts)
    split = {tensor for tensor, _ in factors}
    edges = with_edges(graph, [each for each in dict.fromkeys([*graph.inputs, *graph.outputs]) if each in split])
    for tensor, d in [dim for dim in factors if dim[0] in edges]:
        inside, move = edges[tensor]
        factors[inside, d] = axes[move.axes[d]] = factors.pop((tensor, d))
    if factors:
        apply_split(graph, factors, axes)
    return bool(factors)


def _parts(group: _Group) -> tuple[int, int] | None:
    """How many partitions and how many elements of each, where there are several times as many as without."""
    tensors = [tensor for tensor, _ in group.dims]
    if group.is_apart or not tensors or len(set(tensors)) < len(tensors):
        return None
    largest, at = max(group.dims, key=lambda dim: dim[0].elems)
    extent = largest.shape[at]
    if extent < _LEAST:
        return None
    beside = max((min(n, PARTITIONS) for d, n in enumerate(largest.shape) if d != at), default=1)
    parts = max(n for n in range(1, min(extent, PARTITIONS) + 1) if not extent % n)
    is_long = beside == 1 or extent // parts >= ROW
    return (parts, extent // parts) if is_long and parts >= 4 * beside else None


def _groups(graph: Graph, cuts_slices: bool) -> dict[Dim | Axis, _Group]:
    found: dict[Dim | Axis, _Group] = {}
    for block in graph.blocks:
        is_whole = gathered(block) is None and not is_constant_contraction(block) and not product_factors(block)
        for axis in block.axes:
            _group(found, axis).axes.add(axis)
        for axis in counted_values(block.expr):
            _group(found, axis).is_apart = True
        read = [(load.tensor, load.indices) for load in every_load(block.expr)]
        cut = [tensor for tensor, _ in read if cuts_slices and _is_sliced(block, tensor)]
        for dim in ((tensor, d) for tensor in cut for d in range(len(tensor.shape))):
            _group(found, dim).is_apart = True
        for tensor, indices in [(block.output, block.index), *(place for place in read if place[0] not in cut)]:
            maps = linear_indices(indices)
            for d, extent in enumerate(tensor.shape):
                _count(found, (tensor, d), extent, maps[d] if maps and is_whole else None, indices[d])
    return found


def _is_sliced(block: Block, tensor: Tensor) -> bool:
    return not block.combine and tensor.value is None and tensor.elems > block.output.elems


def _count(found: dict[Dim | Axis, _Group], dim: Dim, extent: int, part: Linear | None, index: Expr) -> None:
    """Unites a dimension with the axis that counts it."""
    group = _group(found, dim)
    group.dims.add(dim)
    axes = list(axes_of(index))
    is_in_step = part is not None and not part.const and list(part.terms.values()) == [1]
    if is_in_step and axes[0].extent == extent:
        _unite(found, group, _group(found, axes[0]))
        return
    for each in [group, *(_group(found, axis) for axis in axes)]:
        each.is_apart |= extent > 1


def _group(found: dict[Dim | Axis, _Group], key: Dim | Axis) -> _Group:
    return found.setdefault(key, _Group())


def _unite(found: dict[Dim | Axis, _Group], group: _Group, other: _Group) -> None:
    if other is group:
        return
    group.dims |= other.dims
    group.axes |= other.axes
    group.is_apart |= other.is_apart
    found |= dict.fromkeys([*other.dims, *other.axes], group)


def counted_values(expr: Expr) -> Iterator[Axis]:
    """Axes whose counts are values."""
    if isinstance(expr, Index):
        yield expr.axis
    for part in expr.args if isinstance(expr, Apply) else ():
        yield from counted_values(part)
