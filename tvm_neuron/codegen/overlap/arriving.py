"""start_as_it_arrives: the first contraction of a network starts with the first rows of an image, not with its last.

Strips of the image come from DRAM in the order of need. After each of them come the rows of the first contraction that
can be had of it, and those of some more, so that the array has work while further strips are on their way, and other
engines while it works on another layer.

An image with its channels last is turned on its way, through DRAM: what puts its rows in order runs in strips, too, and
before all others, since each strip is on its way three times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod

from tvm_neuron.allocation.regions import box, overlaps, source_maps, whole
from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.codegen.overlap.in_parts import weights_bytes
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.restrict import restrict
from tvm_neuron.codegen.tiles.tiled_dims import main_axis
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Load
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_MOST_STRIPS = 8  # each costs instructions, and less and less is won
_RING_SHARE = 2  # 1 / this of the ring at most, for their weights: all strips multiply by them
_IMAGES, _ROWS = 0, 2  # dimensions


@dataclass(frozen=True)
class _Head:
    """The first kernels: those that bring a tensor in and those that work on it, each with the axis that is cut."""

    fills: Sequence[Kernel]
    ordered: Sequence[Kernel]  # put rows in order, which go through DRAM then
    brought: Sequence[Kernel]
    work: Sequence[Kernel]
    axes: Mapping[Kernel, Axis]
    dims: Mapping[Tensor, int]  # along which each tensor is cut

    @property
    def order(self) -> list[Kernel]:
        """All that are cut, each after those that it reads."""
        return [*self.ordered, *self.brought, *self.work]


def start_as_it_arrives(stage: Stage, device: Device, contractions: int) -> Stage:
    """The stage with its first kernels in strips, up to so many contractions, if they work on an input's rows."""
    head = _head(stage.kernels, stage.partition_of, contractions)
    if head is None or sum(map(weights_bytes, head.work)) > stage.tuning.weights_bytes(device) // _RING_SHARE:
        return stage
    start = dict.fromkeys(head.order, 0)
    ends = [start, *(_needed(head, end, stage.partition_of) for end in _ends(head, stage.partition_of, device))]
    parts = [[_part(head, kernel, before, after) for kernel in head.order] for before, after in pairwise(ends)]
    # A contraction stays a strip behind the one before it, whose results are on their way to it meanwhile.
    levels = _levels(head)
    first = len(head.ordered)
    ordered = [part for found in parts for part in found[:first] if part is not None]
    brought = {kernel.out for kernel in head.brought}
    borders = [kernel for kernel in head.fills if kernel.out in brought]
    fills = [kernel for kernel in head.fills if kernel.out not in brought]  # needed later than the rows
    strips = [
        part
        for slot in range(len(parts) + max(levels))
        for number, level in enumerate(levels[first:], first)
        if 0 <= slot - level < len(parts) and (part := parts[slot - level][number]) is not None
    ]
    rest = stage.kernels[len(head.fills) + len(head.order) :]
    return replace(stage, kernels=[*borders, *ordered, *fills, *strips, *rest])


def _part(head: _Head, kernel: Kernel, before: Mapping[Kernel, int], after: Mapping[Kernel, int]) -> Kernel | None:
    """What is to be done of a kernel in a strip; None if that is nothing."""
    start, end = before[kernel], after[kernel]
    return restrict(kernel, head.axes[kernel], start, end, {}) if end > start else None


def _levels(head: _Head) -> list[int]:
    """Of each kernel in order, how many contractions come before the one that it is of or follows."""
    sums = accumulate(int(isinstance(kernel.root, Contraction)) for kernel in head.order)
    return [max(0, count - 1) for count in sums]


def _head(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], contractions: int) -> _Head | None:
    """The kernels up to so many contractions, or to one that can't be cut; None if there is no contraction."""
    fills: list[Kernel] = []
    ordered: list[Kernel] = []
    brought: list[Kernel] = []
    work: list[Kernel] = []
    axes: dict[Kernel, Axis] = {}
    dims: dict[Tensor, int] = {}
    turned = _turned(kernels)
    for kernel in kernels:
        if is_fill(kernel) and kernel.out not in dims:
            fills.append(kernel)
            continue
        rows = partition_of[kernel.out] if kernel in turned else _ROWS
        dim = dims.get(kernel.out, _IMAGES if kernel.out.shape[0] > 1 else rows)
        axis = _cut_axis(kernel, dim, dims, partition_of)
        is_unfit = kernel not in turned and (kernel.out.kind != "temp" or partition_of[kernel.out] == dim)
        if axis is None or is_unfit or (kernel.by_dma and work) or _overwrites(kernel, work, partition_of):
            break
        axes[kernel], dims[kernel.out] = axis, dim
        (ordered if kernel in turned[:-1] else brought if kernel.by_dma else work).append(kernel)
        if sum(isinstance(found.root, Contraction) for found in work) == contractions:
            break
    has_work = bool(brought) and any(isinstance(kernel.root, Contraction) for kernel in work)
    return _Head(fills, ordered, brought, work, axes, dims) if has_work else None


def _turned(kernels: Sequence[Kernel]) -> Sequence[Kernel]:
    """The first kernels, up to one that writes to DRAM, if they do nothing but move rows that lie on the partitions."""
    rest = [kernel for kernel in kernels if not is_fill(kernel)]
    last = next((number for number, kernel in enumerate(rest) if kernel.out.kind == "scratch"), -1)
    found = rest[: last + 1]
    return found if all(isinstance(kernel.expr, Load) and not kernel.root for kernel in found) else []


def _cut_axis(
    kernel: Kernel, dim: int, dims: Mapping[Tensor, int], partition_of: Mapping[Tensor, int]
) -> Axis | None:
    """The axis along which a kernel writes `dim` in order, and so reads `dims` of what was made before, and no more."""
    if len(kernel.out.shape) <= dim:
        return None
    axis = main_axis(kernel.out_maps[dim])
    if axis is None or axis not in (kernel.channel, *kernel.free) or min(kernel.out_maps[dim].terms.values()) < 0:
        return None
    if any(axis in part.terms for d, part in enumerate(kernel.out_maps) if d != dim):
        return None
    for tensor in kernel.sources():
        if tensor in dims:
            maps = source_maps(kernel, tensor, partition_of[tensor])
            if not maps or any(m[dims[tensor]].terms.get(axis, 0) <= 0 for m in maps):
                return None
        elif not (kernel.by_dma and tensor.kind == "input"):
            return None
    return axis


def _overwrites(kernel: Kernel, before: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> bool:
    """Whether it writes what one before it reads, which may still need it in a later strip."""
    here = box(kernel.out_maps, whole(kernel))
    return any(
        overlaps(here, box(maps, whole(other)))
        for other in before
        for maps in source_maps(other, kernel.out, partition_of[kernel.out])
    )


def _ends(head: _Head, partition_of: Mapping[Tensor, int], device: Device) -> list[int]:
    """Where strips of the last kernel end: after about as many tiles of the array of the first one each.

    And with what can be had of the rows that engines put in order at a time.
    """
    first, last = head.work[0], head.work[-1]
    axis, extent = head.axes[first], head.axes[last].extent
    tile = max(1, device.moving_max_elems // prod(other.extent for other in first.free[first.free.index(axis) + 1 :]))
    strips = min(-(-axis.extent // tile), _MOST_STRIPS, extent)
    ends = []
    for low, high in pairwise([0, *_ordered_ends(head, partition_of)]):
        count = max(1, round(strips * (high - low) / extent))
        ends += [low - (low - high) * number // count for number in range(1, count + 1)]
    return ends


def _ordered_ends(head: _Head, partition_of: Mapping[Tensor, int]) -> list[int]:
    """How far the last kernel comes with the rows that are in order, if these lie on the partitions, and its end."""
    extent = head.axes[head.work[-1]].extent
    if not head.ordered or head.axes[head.ordered[0]] is not head.ordered[0].channel:
        return [extent]
    needed = {_needed(head, end, partition_of)[head.ordered[0]]: end for end in range(1, extent + 1)}
    return [end for _, end in sorted(needed.items())]


def _needed(head: _Head, end: int, partition_of: Mapping[Tensor, int]) -> dict[Kernel, int]:
    """How far each kernel has to be for the last one to reach `end`; all of it where that is its own end."""
    last = head.work[-1]
    ends: dict[Kernel, int] = {}
    high: dict[Tensor, int] = {}  # of each tensor, what is read of the dimension that is cut
    for kernel in reversed(head.order):
        axis, part = head.axes[kernel], kernel.out_maps[head.dims[kernel.out]]
        before = -((part.const - high.get(kernel.out, 0)) // part.terms[axis])
        ends[kernel] = end if kernel is last else max(0, min(axis.extent, before))
        if end == head.axes[last].extent:
            ends[kernel] = axis.extent
        if axis is kernel.channel:
            ends[kernel] = min(axis.extent, _step(axis) * -(-ends[kernel] // _step(axis)))
        for tensor in dict.fromkeys(kernel.sources()) if ends[kernel] else ():
            for maps in source_maps(kernel, tensor, partition_of[tensor]) if tensor in head.dims else ():
                low, size = (found[head.dims[tensor]] for found in box(maps, {axis: (0, ends[kernel])}))
                high[tensor] = max(high.get(tensor, 0), low + size)
    return ends


def _step(rows: Axis) -> int:
    """How many of the rows on the partitions are put in order at a time, after which an engine may begin."""
    return PARTITION_START_STEP if rows.extent <= PARTITIONS else PARTITIONS // 2
