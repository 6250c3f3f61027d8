"""factored: stationary tiles that are mostly zeros, as a mask times few numbers, of which POOL makes them.

A depthwise convolution's tile is [128, 128] for 128 numbers of each tap, and a grouped one's has blocks of few columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.weight_tiles import WeightTile
from tvm_neuron.isa import Affine, TensorTensor, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.tiling import PARTITIONS

MANY_BLOCKS = 8  # of a row: numbers of fewer take much of the memory for tiles, and bringing these little more time


@dataclass(frozen=True)
class Factored:
    """tile[p, step, g, j] = mask[p, first + g] * numbers[p, step, j]: each row has numbers in one block alone."""

    mask: NDArray[np.bool_]  # [rows, columns], of which other tiles use others
    first: int
    blocks: int
    numbers: NDArray[Any]  # [rows, steps, columns of a block]

    @property
    def row_elems(self) -> int:
        """Elements of one row of the tile."""
        _, steps, width = self.numbers.shape
        return self.blocks * steps * width

    def make(self, dtype: str, at: int, mask_at: int, numbers_at: int) -> TensorTensor:
        """The instruction that makes the tile at byte `at` of each partition, of what lies at the others."""
        rows, steps, width = self.numbers.shape

        def tile(start: int, of_step: int, of_block: int, of_column: int) -> Tile:
            dims = ((of_step, steps), (of_block, self.blocks), (of_column, width))
            return Tile("sbuf", dtype, Affine(), rows, Affine(start), dims)

        mask = tile(mask_at + self.first * size_bytes(dtype), 0, 1, 0)
        return TensorTensor(tile(at, self.blocks * width, width, 1), mask, tile(numbers_at, width, 0, 1), "multiply")


_KNOWN: WeakKeyDictionary[WeightTile, dict[int, Factored | None]] = WeakKeyDictionary()
"""By tile, of which rooms, programs and orders each ask, and number of blocks."""


def factored(tile: WeightTile, blocks: int = 2) -> Factored | None:
    """The tile so, if its rows have so many blocks at least, and numbers in one of them."""
    known = _KNOWN.setdefault(tile, {})
    if blocks not in known:
        known[blocks] = _factored(tile, blocks)
    return known[blocks]


def _factored(tile: WeightTile, blocks: int) -> Factored | None:
    count, rows, _ = tile.packed.shape
    size = tile.columns
    values = tile.packed.reshape(count * rows, -1, size)
    used = np.any(values, axis=1)
    filled = np.flatnonzero(used.any(axis=1))
    if count > 1 or tile.repeats > 1 or not filled.size or not np.isfinite(values).all():  # 0 times infinity is no zero
        return None
    low, high = used.argmax(axis=1), size - 1 - used[:, ::-1].argmax(axis=1)
    least = 1 + int((high - low)[filled].max())
    for width in (width for width in range(least, size // blocks + 1) if size % width == 0):
        block = low // width
        if (block == high // width)[filled].all():
            mask, first = _mask(block, filled, size // width)
            columns = block[:, None, None] * width + np.arange(width)
            return Factored(mask, first, size // width, np.take_along_axis(values, columns, axis=2))
    return None


def _mask(block: NDArray[np.intp], filled: NDArray[np.intp], blocks: int) -> tuple[NDArray[np.bool_], int]:
    """A mask with which row p has its block[p] of so many, and its first column; what others have, too, if possible."""
    for depth in (1 << n for n in range((PARTITIONS // blocks).bit_length())):
        shift = filled // depth - block[filled]
        if (shift == shift[0]).all() and 0 <= shift[0] <= PARTITIONS // depth - blocks:
            return np.arange(PARTITIONS)[:, None] // depth == np.arange(PARTITIONS // depth), int(shift[0])
    return np.isin(np.arange(len(block)), filled)[:, None] & (np.arange(blocks) == block[:, None]), 0


def side_by_side(parts: Sequence[NDArray[np.generic]]) -> NDArray[np.float32]:
    """[rows, elements] of all, where each has a row for a partition; zero where one has none."""
    whole = np.zeros((max(map(len, parts)), sum(part[0].size for part in parts)), np.float32)
    start = 0
    for part in parts:
        whole[: len(part), start : start + part[0].size] = part.reshape(len(part), -1)
        start += part[0].size
    return whole
