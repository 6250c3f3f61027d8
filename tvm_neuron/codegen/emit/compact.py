"""compact: stationary tiles of grouped convolutions without the zeros beside each group's own block."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.emit.weight_tiles import WeightTile
from tvm_neuron.isa import TensorTensor, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.tiling import PARTITIONS


@dataclass(frozen=True)
class Compact:
    """tile[p, step, g, j] = mask[p, first + g] * weights[p, step, j], where mask[p, c] = (p // depth == c)."""

    weights: NDArray[Any]  # [rows, steps, columns of a block]
    depth: int  # rows of a block
    first: int  # block of the mask, that of the tile's first columns
    blocks: int  # in the tile's columns

    @property
    def row_elems(self) -> int:
        """Elements of one partition."""
        return int(self.weights[0].size)

    def make(self, tile: Tile, mask: Tile, weights: Tile) -> TensorTensor:
        """The instruction that makes the tile at the place of `tile`, from what lies at those of the others."""
        rows, steps, width = self.weights.shape
        start = mask.offset.plus(self.first * size_bytes(mask.dtype))
        result = replace(tile, dims=((self.blocks * width, steps), (width, self.blocks), (1, width)))
        left = replace(mask, offset=start, partitions=rows, dims=((0, steps), (1, self.blocks), (0, width)))
        right = replace(weights, dims=((width, steps), (0, self.blocks), (1, width)))
        return TensorTensor(result=result, left=left, right=right, op="multiply")


def block_mask(depth: int) -> NDArray[np.float32]:
    """[128, 128 / depth] ones in the blocks of a diagonal, `depth` rows each."""
    return np.repeat(np.eye(PARTITIONS // depth, dtype=np.float32), depth, axis=0)


def compact(tile: WeightTile) -> Compact | None:
    """The tile without its zeros, if its weights are a diagonal of equal blocks."""
    count, rows, _ = tile.packed.shape
    size = tile.columns
    values = tile.packed.reshape(count * rows, -1, size)
    used = np.any(values, axis=1)
    filled = np.flatnonzero(np.any(used, axis=1))
    if count > 1 or not filled.size or not np.isfinite(values).all():  # zero times infinity is no zero
        return None
    low, high = used.argmax(axis=1), size - 1 - used[:, ::-1].argmax(axis=1)
    for width in (width for width in range(1, size // 2 + 1) if size % width == 0):
        block, blocks = low // width, size // width
        if (block != high // width)[filled].any():
            continue
        for depth in (1 << n for n in range((PARTITIONS // blocks).bit_length())):
            shift = filled // depth - block[filled]
            if (shift == shift[0]).all() and 0 <= shift[0] <= PARTITIONS // depth - blocks:
                columns = block[:, None, None] * width + np.arange(width)
                return Compact(np.take_along_axis(values, columns, axis=2), depth, int(shift[0]), blocks)
    return None
