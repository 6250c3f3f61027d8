"""weight_tiles: a contraction's weights as stationary tiles, packed as they will lie on the partitions."""

import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.corners import Corner, corners
from tvm_neuron.errors import CompileError, PrecisionWarning
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import DTYPES, size_bytes
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS, Segment, runs

Places = tuple[tuple[int, int], ...]
"""Of each axis of a window's steps: the first of those that any weights are at, and how many from there on."""


@dataclass(frozen=True, eq=False)
class WeightTile:
    """Stationary tiles of one run of output channels: [tiles, rows, depth tiles * steps * columns]."""

    run: Segment
    depth_runs: tuple[tuple[Segment, int, int], ...]  # (run of summed channels, index of its first tile, first column)
    packed: NDArray[Any]
    columns: int  # of one matmul: all of the run, or those of a corner
    places: Places = ()
    repeats: int = 1  # how often each weight of the model occurs

    @property
    def steps(self) -> int:
        """Matmuls over one run of summed channels: one for each place of the window that has weights."""
        return prod(count for _, count in self.places)

    @property
    def row_elems(self) -> int:
        """Elements of one partition in one tile."""
        return int(self.packed.shape[2])

    @property
    def bytes_per_partition(self) -> int:
        """What all tiles take."""
        return int(self.packed.shape[0] * self.row_elems * self.packed.dtype.itemsize)

    def part(self, first: int, count: int) -> "WeightTile":
        """`count` of the tiles, from tile `first`."""
        start, size, _ = self.run
        run = (start + first * PARTITIONS, size, count)
        return replace(self, run=run, packed=self.packed[first : first + count])


@dataclass(frozen=True)
class _Cut:
    """One run of output channels with the runs of summed channels that it depends on, its corners, and its places."""

    run: Segment
    depth: Sequence[Segment]
    corners: Sequence[Corner] | None
    places: Places


_PACKED: WeakKeyDictionary[Kernel, dict[Hashable, list[WeightTile]]] = WeakKeyDictionary()
"""By kernel, which is emitted once for each order that the clock compares, and is of one device."""
_CUTS: WeakKeyDictionary[Kernel, dict[Hashable, list[_Cut]]] = WeakKeyDictionary()
"""In the same way."""


def weight_tiles(kernel: Kernel, channels: Sequence[Segment], data_first: int, device: Device) -> list[WeightTile]:
    """The tiles of each run of output channels; the data's channel 0 lies on the absolute partition `data_first`.

    Where whole blocks of the weights are zero (groups), each tile keeps only the depth and the places it needs.
    """
    known = _PACKED.setdefault(kernel, {})
    key = (tuple(channels), data_first)
    if key not in known:
        root = kernel.root
        assert isinstance(root, Contraction)
        _warn_of_infinities(kernel, root)
        with np.errstate(over="ignore"):
            known[key] = [_pack(root, cut, data_first) for cut in _cuts(kernel, channels, data_first, device)]
    return known[key]


def _warn_of_infinities(kernel: Kernel, root: Contraction) -> None:
    """Of weights that float16 doesn't hold; bfloat16 reaches as far as float32."""
    limit = float(np.finfo(np.float16).max)
    sizes = np.abs(root.weights, dtype=np.float64) if root.dtype == "float16" else np.zeros(0)
    lost = np.isfinite(sizes) & (sizes > limit)
    if lost.any():
        name = kernel.origins[0].name
        warnings.warn(
            f"{kernel.origins[0]}: {lost.sum():,} of its {sizes.size:,} weights become infinite, for float16 ends at "
            f"{limit:.0f} and the largest is {sizes[lost].max():.6g}: choose bfloat16 (fp32_cast='all', 'matmult'), or "
            f"another precision for it alone (fp32_cast_of={{'{name}': 'matmult'}}, --fp32-cast-of '{name}=matmult')",
            PrecisionWarning,
            stacklevel=2,
        )


def tiles_bytes(kernel: Kernel, channels: Sequence[Segment], data_first: int, device: Device) -> int:
    """Bytes of each partition that all these tiles take, without making them."""
    assert isinstance(kernel.root, Contraction)
    elems = 0
    for cut in _cuts(kernel, channels, data_first, device):
        _, size, count = cut.run
        columns = size // len(cut.corners) if cut.corners else size * sum(repeat for _, _, repeat in cut.depth)
        elems += count * columns * prod(places for _, places in cut.places)
    return elems * size_bytes(kernel.root.dtype)


def _cuts(kernel: Kernel, channels: Sequence[Segment], data_first: int, device: Device) -> list[_Cut]:
    """What tiles there are."""
    known = _CUTS.setdefault(kernel, {})
    key = (tuple(channels), data_first)
    if key not in known:
        known[key] = list(_cut(kernel, channels, data_first, device))
    return known[key]


def _cut(kernel: Kernel, channels: Sequence[Segment], data_first: int, device: Device) -> Iterator[_Cut]:
    root = kernel.root
    assert isinstance(root, Contraction)
    depth = runs(root.weights.shape[0], [data_first])
    whole = tuple((0, axis.extent) for axis in root.steps)
    for start, size, count in channels:
        if not root.has_zeros:
            yield _Cut((start, size, count), depth, None, whole)
            continue
        for i in range(count):
            run = (start + i * PARTITIONS, size, 1)
            used = _used_depth(root, depth, run)
            parts = corners(kernel, run, data_first, device) if len(used) == 1 else None
            yield _Cut(run, used, parts, _filled_places(root, used, run) if whole else ())


def in_order(tiles: Sequence[WeightTile]) -> list[WeightTile]:
    """Single tiles by output channel, so that any group of them covers a range of channels (which can be staged)."""
    single = [tile.part(i, 1) for tile in tiles for i in range(tile.run[2])]
    return sorted(single, key=lambda tile: tile.run[0])


def split_tiles(tiles: Sequence[WeightTile], budget: int) -> tuple[list[WeightTile], list[WeightTile]]:
    """As many of the first tiles as `budget` bytes of each partition hold, and the others."""
    kept: list[WeightTile] = []
    rest: list[WeightTile] = []
    for tile in tiles:
        count = 0 if rest else min(budget // (tile.row_elems * tile.packed.dtype.itemsize), tile.run[2])
        if count:
            kept.append(tile.part(0, count))
            budget -= kept[-1].bytes_per_partition
        if count < tile.run[2]:
            rest.append(tile.part(count, tile.run[2] - count))
    return kept, rest


def groups(tiles: Sequence[WeightTile], capacity: int, kernel: Kernel) -> list[list[WeightTile]]:
    """Tiles in groups that fit in the memory for weights (in half of it, if there are several); runs are cut for that.

    Raises:
        CompileError: a single tile is larger than that memory.
    """
    room = capacity if sum(tile.bytes_per_partition for tile in tiles) <= capacity else capacity // 2
    found: list[list[WeightTile]] = [[]] if tiles else []
    free = room
    for tile in tiles:
        each = tile.row_elems * tile.packed.dtype.itemsize
        if each > capacity:
            raise CompileError(
                f"{kernel.origins[0]}: the weights of one tile take {each} bytes of each "
                f"partition; {capacity} are there for weights"
            )
        done = 0
        while done < tile.run[2]:
            fits = min(max(free // each, 0 if found[-1] else 1), tile.run[2] - done)
            if fits == 0:
                found.append([])
                free = room
                continue
            found[-1].append(tile.part(done, fits))
            free -= fits * each
            done += fits
    return found


def _used_depth(root: Contraction, depth: Sequence[Segment], run: Segment) -> list[Segment]:
    """The runs of summed channels that this run of output channels depends on at all."""
    single = [(start + i * PARTITIONS, size, 1) for start, size, count in depth for i in range(count)]
    columns = root.weights[..., run[0] : run[0] + run[1]]
    used = [part for part in single if np.any(columns[part[0] : part[0] + part[1]])]
    return used or single[:1]


def _filled_places(root: Contraction, depth: Sequence[Segment], run: Segment) -> Places:
    """The places of the window at which these output channels have weights for these summed channels."""
    parts = [root.weights[start : start + PARTITIONS * (n - 1) + size] for start, size, n in depth]
    columns = [np.any(part[..., run[0] : run[0] + run[1]], axis=(0, -1)) for part in parts]
    filled = np.any(columns, axis=0)  # of all steps
    found: list[tuple[int, int]] = []
    for dim in range(filled.ndim):
        at = np.flatnonzero(filled.any(axis=tuple({*range(filled.ndim)} - {dim})))
        found.append((int(at[0]), int(at[-1] - at[0]) + 1) if at.size else (0, 1))
    return tuple(found)


def _pack(root: Contraction, cut: _Cut, data_first: int) -> WeightTile:
    """Rows lie on the partitions of the data that they meet; each row holds its depth tiles, steps and columns.

    Corners lie side by side on partitions of their own, at the same place in their rows.
    """
    run, depth, parts = cut.run, cut.depth, cut.corners
    start, size, count = run
    steps = prod(places for _, places in cut.places)
    weights = root.weights[:, *(slice(first, first + places) for first, places in cut.places)]
    weights = weights.reshape(root.weights.shape[0], steps, root.weights.shape[-1])
    indices = [0] * len(parts) if parts else [sum(r for _, _, r in depth[:i]) for i in range(len(depth))]
    placed = [(run, at, low) for (run, low), at in zip(parts or [(run, 0) for run in depth], indices, strict=True)]
    columns = size // len(parts) if parts else size
    rows = max((data_first + first) % PARTITIONS + length for (first, length, _), _, _ in placed)
    tiles = 1 if parts else sum(repeat for _, _, repeat in depth)
    # As DRAM will hold it, so that nothing is copied for each program: a partition's part of all tiles lies together.
    packed = np.zeros((rows, count, tiles, steps, columns), DTYPES[root.dtype])
    for (first, length, repeat), index, low in placed:
        row = (data_first + first) % PARTITIONS
        for j in range(repeat):
            part = weights[first + j * PARTITIONS :][:length]
            for i in range(count):
                packed[row : row + length, i, index + j] = part[..., start + i * PARTITIONS + low :][..., :columns]
    packed = packed.reshape(rows, count, -1).transpose(1, 0, 2)
    return WeightTile(run, tuple(placed), packed, columns, cut.places, root.repeats)


def row_bytes(tile: WeightTile, dtype: str) -> int:
    """Bytes of each partition that one tile takes."""
    return tile.row_elems * size_bytes(dtype)
