"""regions: which box of a tensor a part of a kernel touches, and how a kernel is cut so that boxes fit in SBUF."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product, Reduction, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.partitions import period
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import Region, segments

_NEARLY = 7, 8  # so much of a dimension: the rest costs less to bring than a descriptor for each row
Box = tuple[tuple[int, ...], tuple[int, ...]]  # (origin, shape)


def whole(kernel: Kernel) -> Region:
    """All of the kernel's free axes."""
    return {axis: (0, axis.extent) for axis in kernel.free}


def box(maps: Sequence[Linear], region: Region) -> Box:
    """The smallest box that holds `maps` over the region; axes outside of it run over all their extent."""
    origin, shape = [], []
    for part in maps:
        low = high = part.const
        for axis, step in part.terms.items():
            first, end = region.get(axis, (0, axis.extent))
            ends = (step * first, step * (end - 1))
            low, high = low + min(ends), high + max(ends)
        origin.append(low)
        shape.append(high - low + 1)
    return tuple(origin), tuple(shape)


def overlaps(a: Box, b: Box) -> bool:
    """Whether both have an element in common."""
    return all(p < q + m and q < p + n for p, n, q, m in zip(*a, *b, strict=True))


def joined(boxes: Sequence[Box]) -> Box:
    """The smallest box around some boxes."""
    origin = tuple(min(b[0][d] for b in boxes) for d in range(len(boxes[0][0])))
    end = [max(b[0][d] + b[1][d] for b in boxes) for d in range(len(origin))]
    return origin, tuple(e - o for e, o in zip(end, origin, strict=True))


def whole_rows(part: Box, shape: Sequence[int], partition_dim: int) -> Box:
    """The box with all of what it nearly covers within partitions, so that its rows lie together in DRAM."""
    rows = [
        (0, extent) if dim != partition_dim and size * _NEARLY[1] >= extent * _NEARLY[0] else (low, size)
        for dim, (low, size, extent) in enumerate(zip(*part, shape, strict=True))
    ]
    return tuple(low for low, _ in rows), tuple(size for _, size in rows)


def source_maps(kernel: Kernel, tensor: Tensor, partition_dim: int) -> list[tuple[Linear, ...]]:
    """Every map through which the kernel reads the tensor; a contraction's channels run over a summed axis."""
    found: list[tuple[Linear, ...]] = []
    root = kernel.root
    if isinstance(root, Contraction) and root.data is tensor:
        found.append(data_maps(root, partition_dim)[1])
    if isinstance(root, Contraction) and root.scale and root.scale.tensor is tensor:
        found.append(channel_maps(root, root.scale.maps, partition_dim)[1])
    if isinstance(root, Product):
        found += [operand.maps for operand in (root.stationary, root.moving) if operand.tensor is tensor]
    if isinstance(root, Transposition) and root.source.tensor is tensor:
        found.append(root.source.maps)
    if isinstance(root, Reduction):
        found += [linear_indices(load.indices) or () for load in root.loads if load.tensor is tensor]
    for load in kernel.operand_loads():
        if load.tensor is tensor:
            found.append(linear_indices(load.indices) or ())
    return found


def data_maps(root: Contraction, partition_dim: int) -> tuple[Axis, tuple[Linear, ...]]:
    """A contraction's summed channel as an axis, and the maps of its data with it."""
    return channel_maps(root, root.maps, partition_dim)


def channel_maps(root: Contraction, maps: Sequence[Linear], partition_dim: int) -> tuple[Axis, tuple[Linear, ...]]:
    """A contraction's summed channel as an axis, and the maps of its data, or of what scales its weights, with it."""
    depth = Axis("k", root.weights.shape[0], True)
    part = Linear(maps[partition_dim].const, {depth: 1})
    return depth, tuple(part if d == partition_dim else m for d, m in enumerate(maps))


def strips(
    kernel: Kernel, size_of: Callable[[Region], int], moved_of: Callable[[Region], int], budget: int,
    grains: Mapping[Axis, int],
) -> list[Region]:  # fmt: skip
    """The kernel's free axes in parts of which each needs at most `budget` bytes (or as little as can be).

    Axes with a grain are cut at multiples of it: there they are back on the partition where they started.
    """
    sizes = strip_sizes(kernel, size_of, moved_of, budget, grains)
    cuts = [list(_cut(axis.extent, sizes[axis], axis in grains)) for axis in kernel.free]
    return [dict(zip(kernel.free, part, strict=True)) for part in product(*cuts)]


def strip_sizes(
    kernel: Kernel, size_of: Callable[[Region], int], moved_of: Callable[[Region], int], budget: int,
    grains: Mapping[Axis, int],
) -> dict[Axis, int]:  # fmt: skip
    """How much of each free axis the largest of these parts has.

    The axis is halved that leaves the least to be moved by all parts together, of several the first.
    """
    sizes = {axis: axis.extent for axis in kernel.free}
    grain = {axis: axis.extent if axis in kernel.whole else grains.get(axis, 1) for axis in kernel.free}
    while (size := size_of(_first(sizes))) > budget:
        halves = [sizes | {a: -(-((sizes[a] + 1) // 2) // grain[a]) * grain[a]} for a in sizes if sizes[a] > grain[a]]
        smaller = [half for half in halves if size_of(_first(half)) < size]
        if not smaller:
            break
        sizes = min(smaller, key=lambda half: _parts(half) * moved_of(_first(half))) if len(smaller) > 1 else smaller[0]
    return sizes


def _first(sizes: Mapping[Axis, int]) -> Region:
    """The first of the parts."""
    return {axis: (0, size) for axis, size in sizes.items()}


def _parts(sizes: Mapping[Axis, int]) -> int:
    """How many parts there are."""
    return prod(-(-axis.extent // size) for axis, size in sizes.items())


def _cut(extent: int, size: int, has_grain: bool) -> Iterator[tuple[int, int]]:
    if has_grain:
        yield from ((low, min(low + size, extent)) for low in range(0, extent, size))
        return
    for start, even, count in segments(0, extent, size):
        yield from ((start + i * even, start + (i + 1) * even) for i in range(count))


def grains(kernel: Kernel, partition_of: Mapping[Tensor, int]) -> dict[Axis, int]:
    """The free axes along which the kernel steps through partitions; after so many steps it is back on the same."""
    places = [(kernel.out, kernel.out_maps)]
    root = kernel.root
    if isinstance(root, Product):
        places += [(operand.tensor, operand.maps) for operand in (root.stationary, root.moving)]
    if isinstance(root, Transposition):
        places.append((root.source.tensor, root.source.maps))
    places += [(load.tensor, linear_indices(load.indices) or ()) for load in kernel.operand_loads()]
    found: dict[Axis, int] = {}
    for tensor, maps in places:
        for axis, step in maps[partition_of[tensor]].terms.items() if maps else ():
            if axis in kernel.free:
                found[axis] = max(found.get(axis, 1), period(step))
    return found
