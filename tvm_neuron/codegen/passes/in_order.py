"""in_order: dimensions along which what several axes count on the partitions can be reached in order."""

from collections.abc import Collection, Sequence

from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import is_addressable

ROW = 128
"""Elements that DMA takes as one piece as quickly as their bytes: 512 bytes of float32."""


def unmoved_dim(block: Block, load: Load, partition_dim: int) -> int | None:
    """The longest dimension that a move takes as it is, where several axes count its source's partitions out of order.

    Of several the innermost, so that tiles can cut the others; None if there is none, or none is needed.
    """
    maps, out = linear_indices(load.indices), linear_indices(block.index)
    if not maps or not out:
        return None
    here, shape = maps[partition_dim], load.tensor.shape
    if len(here.terms) < 2 or any(is_addressable(here, axis) for axis in here.terms):
        return None
    alone = {axis for part in out if len(part.terms) == 1 for axis, step in part.terms.items() if step == 1}
    kept = [d for d, m in enumerate(maps) if m.terms and m.terms.keys() <= alone and _is_whole(m, shape[d])]
    return max(kept, key=lambda d: (shape[d], d), default=None)


def stored_dim(block: Block, dim: int, out_maps: Sequence[Linear], axes: Collection[Axis]) -> int:
    """`dim`, or for an output whose rows count several axes along it, another one, so that rows are stored whole.

    They are in any case if each place of the `axes`, which lie on the partitions, has a long row.
    """
    if block.output.kind != "output" or len(out_maps[dim].terms) < 2 or dim < len(out_maps) - 1:
        return dim
    if is_in_rows(out_maps[dim], axes):
        return dim
    outer = [d for d, m in enumerate(out_maps[:dim]) if list(m.terms.values()) == [1]]
    return max(outer, key=lambda d: block.output.shape[d], default=dim)


def is_in_rows(part: Linear, axes: Collection[Axis]) -> bool:
    """Whether each place of the axes counts a row long enough for DMA, 512 bytes of float32."""
    return bool(axes) and all(part.terms.get(axis, 0) >= ROW for axis in axes)


def _is_whole(part: Linear, extent: int) -> bool:
    """Whether it runs once over all of a dimension."""
    return not part.const and [(axis.extent, step) for axis, step in part.terms.items()] == [(extent, 1)]
