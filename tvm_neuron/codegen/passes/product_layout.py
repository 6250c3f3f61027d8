"""product_layout: how the operands and the result of a product of two run-time tensors lie on the partitions."""

from math import prod

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import is_addressable, stepping
from tvm_neuron.schedule.roles import product_factors
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

LOOKAHEAD = 6  # elementwise operators between a result and the reader that cares how it lies
_Read = tuple[Block, tuple[Linear, ...]]


def depth_dims(load: Load, depth: Axis) -> list[int]:
    """The dimensions of an operand that can lie on the partitions with the summed axis `depth` along them."""
    maps = linear_indices(load.indices) or ()
    return [d for d, m in enumerate(maps) if _has_depth(m, depth)]


def _has_depth(part: Linear, depth: Axis) -> bool:
    others = stepping(part, depth)
    if depth.extent > 1 and depth not in part.terms:
        return False
    return is_addressable(part, depth) and not any(a.is_reduction for a in others)


def summed_axis(block: Block) -> Axis:
    """The axis to sum over along the partitions: the longest; one of length 1 if nothing is summed."""
    summed = [axis for axis in block.reduction if axis.extent > 1]
    return max(summed, key=lambda axis: axis.extent) if summed else Axis("k", 1, True)


def depth_lies(load: Load, dim: int, depth: Axis) -> tuple[int, dict[Axis, int]]:
    """On which partition the depth begins, and the axes that step through partitions beside it."""
    part = (linear_indices(load.indices) or ())[dim]
    return part.const % PARTITIONS, stepping(part, depth)


def result_dims(block: Block) -> list[int]:
    """The dimensions of a product's result that can lie on the partitions: an axis of one operand alone does there."""
    return list(_result_axes(block))


def result_partitions(block: Block) -> int:
    """On how many partitions at most the PE array can leave a product's result at a time; 0 if on none."""
    return max((min(axis.extent, PARTITIONS) for axis in _result_axes(block).values()), default=0)


def _result_axes(block: Block) -> dict[int, Axis]:
    """The axis that lies on the partitions by each dimension of a product's result that can lie there."""
    pair, out_maps = product_factors(block), linear_indices(block.index)
    if pair is None or out_maps is None:
        return {}
    left, right = ({a for m in linear_indices(load.indices) or () for a in m.terms} for load in pair)
    found = {}
    for d, part in enumerate(out_maps):
        own = [axis for axis, step in part.terms.items() if step == 1 and axis in left ^ right]
        axis = own[0] if own else Axis("m", 1)
        if is_addressable(part, axis):
            found[d] = axis
    return found


def counted_together(block: Block) -> tuple[Load, list[Axis]] | None:
    """An operand with axes, outermost first, that alone count a dimension of the result: the longest such dimension.

    So it is where windows of an image are read in place, rows and columns apart.
    """
    pair, out_maps = product_factors(block), linear_indices(block.index)
    if pair is None or out_maps is None:
        return None
    left, right = ({a for m in linear_indices(load.indices) or () for a in m.terms} for load in pair)
    found: list[tuple[int, Load, list[Axis]]] = []
    for part, extent in zip(out_maps, block.output.shape, strict=True):
        axes = _counting(part)
        for load, own in zip(pair, (left - right, right - left), strict=True):
            if axes and own >= set(axes):
                found.append((extent, load, axes))
    return max(found, key=lambda each: each[0])[1:] if found else None


def summed_together(block: Block) -> tuple[Load, list[Axis]] | None:
    """An operand that moves along summed axes apart, and these, outermost first, which the other one counts as one.

    Summed one by one, they would fill few rows of the PE array: as the 7 columns of a window of 7 x 7 do.
    """
    pair = product_factors(block) or ()
    for load, other in zip(pair, reversed(pair), strict=True):
        apart, together = (linear_indices(each.indices) or () for each in (load, other))
        for part in together:
            axes = _counting(part)
            is_alone = not any(axis in m.terms for m in together if m is not part for axis in axes)
            is_summed = bool(axes) and all(axis.is_reduction and axis.extent < PARTITIONS for axis in axes)
            if is_summed and is_alone and part not in apart:
                return load, axes
    return None


def _counting(part: Linear) -> list[Axis]:
    """The axes that a dimension counts together from 0 on, outermost first; none where there is just one, or gaps."""
    axes = sorted(part.terms, key=lambda axis: -part.terms[axis])
    steps = [prod(axis.extent for axis in axes[at + 1 :]) for at in range(len(axes))]
    is_whole = len(axes) > 1 and not part.const and [part.terms[axis] for axis in axes] == steps
    return axes if is_whole else []


def choose_result_dim(block: Block, graph: Graph) -> int:
    """Of those dimensions the one that suits the readers: summed by the PE array rather than reduced, then the longest.

    Where there is none, the rule refuses the block.
    """
    tensor, wishes = block.output, _Wishes(graph)
    others = [result_dims(other) for other in graph.writers(tensor) if product_factors(other)]  # of other heads, say
    dims = result_dims(block) or [0]
    dims = [dim for dim in dims if all(dim in each for each in others)] or dims
    split = wishes.split(tensor)
    dims = [dim for dim in dims if dim not in split] or dims
    return max(dims, key=lambda dim: (wishes.of(tensor, dim, LOOKAHEAD), min(tensor.shape[dim], PARTITIONS)))


class _Wishes:
    """What the readers of tensors wish for; a tensor in pieces has as many writers, whose readers are the same."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.reads: dict[Tensor, list[_Read]] = {}
        self.known: dict[tuple[Tensor, int, int], int] = {}

    def split(self, tensor: Tensor) -> set[int]:
        """The dimensions that arithmetic reads by several axes, as heads and channels: no engine does partitions so."""
        maps = [maps for reader, maps in self._reads(tensor) if not reader.combine]
        return {dim for each in maps for dim, part in enumerate(each) if len(part.terms) > 1}

    def of(self, tensor: Tensor, dim: int, depth: int) -> int:
        """1 if the nearest reader that cares sums products along the dimension, -1 if it reduces it otherwise.

        `depth` operators further are looked at.
        """
        if (tensor, dim, depth) in self.known:
            return self.known[tensor, dim, depth]
        found = 0
        for reader, maps in self._reads(tensor):
            if any(axis.is_reduction for axis in maps[dim].terms):
                found += -1 if isinstance(reader.expr, Load) else 1
            elif not reader.combine and depth:
                out = linear_indices(reader.index) or ()
                there = [d for d, m in enumerate(out) if set(m.terms) & set(maps[dim].terms)]
                found += self.of(reader.output, there[0], depth - 1) if there else 0
        self.known[tensor, dim, depth] = max(-1, min(1, found))
        return self.known[tensor, dim, depth]

    def _reads(self, tensor: Tensor) -> list[_Read]:
        """The blocks that read it, and where each of their loads does."""
        if tensor not in self.reads:
            loads = [(r, load) for r in self.graph.readers(tensor) for load in r.loads() if load.tensor is tensor]
            maps = [(reader, linear_indices(load.indices)) for reader, load in loads]
            self.reads[tensor] = [(reader, each) for reader, each in maps if each is not None]
        return self.reads[tensor]


def input_dim(graph: Graph, tensor: Tensor) -> int | None:
    """For an input that a product reads, or a cast of it: one that DMA fills in rows, from which the depth is near."""
    for reader in graph.readers(tensor):
        if isinstance(reader.expr, Load) and reader.expr.indices == reader.index and not reader.combine:
            found = input_dim(graph, reader.output)
            if found is not None:
                return found
        for load in product_factors(reader) or ():
            dims = depth_dims(load, summed_axis(reader)) if load.tensor is tensor else []
            if dims:
                inner = prod(tensor.shape[dims[0] + 1 :])
                longer = [d for d in range(dims[0]) if tensor.shape[d] > 1]
                return dims[0] if inner > 1 or not longer else longer[-1]
    return None
