"""Grouped convolutions: what lies beside the blocks of their weights is made on the core, not brought from DRAM."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.graphs import layer, weights_moved
from tvm_neuron.codegen.emit.compact import block_mask, compact
from tvm_neuron.codegen.emit.diagonals import diagonals
from tvm_neuron.codegen.emit.weight_tiles import WeightTile
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Affine, Tile

STEPS = 9


def _tile(depth: int, width: int, blocks: int, first: int = 0) -> WeightTile:
    """Blocks [depth, STEPS, width] of nonzero weights, from row `first` on and column 0 on."""
    rng = np.random.default_rng([depth, width, blocks, first])
    packed = np.zeros((first + depth * blocks, STEPS, width * blocks), np.float32)
    for block in range(blocks):
        rows = slice(first + block * depth, first + (block + 1) * depth)
        packed[rows, :, block * width : (block + 1) * width] = rng.uniform(1, 2, (depth, STEPS, width))
    run = (0, width * blocks, 1)
    return WeightTile(run, (((0, packed.shape[0], 1), 0, 0),), packed.reshape(1, packed.shape[0], -1), run[1])


@pytest.mark.parametrize(
    ("depth", "width", "blocks", "first"),
    [(1, 1, 128, 0), (1, 1, 64, 64), (1, 2, 32, 32), (4, 4, 32, 0), (8, 4, 16, 0), (64, 32, 2, 0), (2, 1, 16, 96)],
)
def test_the_instruction_makes_the_tile(depth: int, width: int, blocks: int, first: int) -> None:
    tile = _tile(depth, width, blocks, first)
    found = compact(tile)
    assert found is not None
    assert (found.depth, found.blocks, found.row_elems) == (depth, blocks, STEPS * width)
    rows = tile.packed.shape[1]
    place = Tile("sbuf", "float32", Affine(), rows, Affine(0), ((1, 1),))
    instruction = found.make(place, place, place)
    mask = block_mask(found.depth)[:rows]
    start = instruction.left.offset.base // 4
    memory = [mask[:, start:], found.weights.reshape(rows, -1)]
    operands = [_read(array, side) for array, side in zip(memory, (instruction.left, instruction.right), strict=True)]
    assert np.array_equal(instruction.compute(*operands).reshape(rows, -1), tile.packed[0])


def _read(memory: np.ndarray, tile: Tile) -> np.ndarray:
    at = np.zeros(1, np.int64)
    for step, count in tile.dims:
        at = at[..., None] + np.arange(count) * step
    return memory[:, at[0]]


def test_what_is_no_diagonal_of_blocks_comes_as_it_is() -> None:
    dense = _tile(8, 8, 1)
    assert compact(dense) is None
    shifted = _tile(1, 1, 16)
    shifted.packed[0, 3] = np.roll(shifted.packed[0, 3], 8)
    assert compact(shifted) is None
    infinite = _tile(1, 1, 16)
    infinite.packed[0, 5, 5] = np.inf  # times a zero of the mask it would be NaN
    assert compact(infinite) is None
    assert compact(_tile(3, 3, 5)) is None  # no mask has blocks of three rows


def test_a_tile_is_made_where_two_have_room() -> None:
    tile, device = _tile(1, 1, 64), load_device("inf1")
    assert diagonals([tile], "bfloat16", device, 2 * 64 * STEPS * 2) is not None
    assert diagonals([tile], "bfloat16", device, 2 * 64 * STEPS * 2 - 2) is None


@pytest.mark.parametrize(
    ("channels", "groups", "out"), [(200, 200, 200), (144, 144, 144), (64, 64, 128), (128, 16, 128), (24, 8, 24)]
)
def test_grouped_convolutions_as_onnxruntime_has_them(channels: int, groups: int, out: int) -> None:
    rng = np.random.default_rng([channels, groups, out])
    weights = rng.standard_normal((out, channels // groups, 3, 3)).astype(np.float32)
    bias = rng.standard_normal(out).astype(np.float32)
    shape = (1, channels, 57, 56)  # several strips, for each of which the tiles are made again
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=groups, pads=[1, 1, 1, 1], strides=[2, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    moved = weights_moved(layer(nodes, shape, w=weights, b=bias), rng, "neuron/inf1")
    # Each of at most 5 tiles of 64 channels reads rows on up to 128 partitions; a mask and the biases come with them.
    tiles = -(-out // 64) + 1
    assert moved <= tiles * 128 * 9 * (out // groups) * 2 + 128 * 128 * 2 + tiles * 128 * 4
