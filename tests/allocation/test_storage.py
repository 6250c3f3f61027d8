"""Storage: the addresses of a tile are those of its elements, one by one, for random boxes, maps and tiles."""

import itertools

import numpy as np
import pytest

from tvm_neuron.allocation.layouts import bytes_on_chip, dram_strides, on_chip
from tvm_neuron.allocation.storage import InDram, Span
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.linear import Linear

SEEDS = range(40)


def draw(seed: int) -> tuple[np.random.Generator, tuple[int, ...], int, str]:
    """A tensor [outer, channels, rows, columns] and the dimension that lies on the partitions."""
    rng = np.random.default_rng(seed)
    channels = int(rng.choice([3, 32, 128, 200, 300]))
    return rng, (int(rng.integers(1, 4)), channels, 7, 9), 1, str(rng.choice(["bfloat16", "float32"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_addresses_in_sbuf(seed: int) -> None:
    rng, shape, partition_dim, dtype = draw(seed)
    offset = 64 * int(rng.integers(0, 9))
    storage = on_chip(dtype, partition_dim, offset, (0, 0, 0, 0), shape)
    channel, image, row, column = Axis("c", shape[1]), Axis("n", shape[0]), Axis("y", 3), Axis("x", 4)
    stride, first = int(rng.integers(1, 3)), int(rng.integers(0, 2))
    maps = (Linear(0, {image: 1}), Linear(0, {channel: 1}), Linear(first, {row: stride}), Linear(1, {column: 2}))
    chunks = shape[1] // 128
    whole = Span(0, 128, 0, 128, chunks) if chunks > 1 else Span(0, min(128, shape[1]))
    spans = {channel: whole, image: Span(0, shape[0]), row: Span(1, 2), column: Span(0, 4)}
    free = (image, row, column)
    tile = storage.tile(maps, channel, free, spans)
    item = size_bytes(dtype)

    def address(position: tuple[int, ...]) -> tuple[int, int]:
        """Channel c lies in partition c % 128; its chunk's elements follow each other, the last dimension closest."""
        n, c, y, x = position
        elems = (c // 128) * (shape[0] * shape[2] * shape[3]) + (n * shape[2] + y) * shape[3] + x
        return c % 128, offset + elems * item

    for turn in range(max(1, chunks)):
        counts = [range(tile.partitions), *(range(count) for _, count in tile.dims)]
        for p, *at in itertools.islice(itertools.product(*counts), 0, None, 37):
            found = (
                tile.partition.at((turn,)) + p,
                tile.offset.at((turn,)) + item * sum(step * i for (step, _), i in zip(tile.dims, at, strict=True)),
            )
            n, y, x = at[0], 1 + at[1], at[2]
            assert found == address((n, turn * 128 + p, first + stride * y, 1 + 2 * x))
    assert tile.offset.at((max(0, chunks - 1),)) + tile.extent_bytes <= offset + bytes_on_chip(dtype, 1, shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_addresses_in_dram(seed: int) -> None:
    rng, shape, _, dtype = draw(seed)
    order = [int(d) for d in rng.permutation(4)]
    storage = InDram(3, dtype, dram_strides(shape, order))
    channel, row, column = Axis("c", shape[1]), Axis("y", 3), Axis("x", 4)
    maps = (Linear(shape[0] - 1), Linear(0, {channel: 1}), Linear(1, {row: 2}), Linear(2, {column: 1}))
    spans = {channel: Span(1, 2), row: Span(0, 3), column: Span(2, 2)}
    tile = storage.tile(maps, channel, (row, column), spans)
    numbers = np.arange(np.prod(shape)).reshape([shape[d] for d in order]).transpose(np.argsort(order))
    wanted = numbers[shape[0] - 1, 1:3][:, [1, 3, 5]][:, :, [4, 5]]
    grid = np.indices([count for _, count in tile.dims])
    found = tile.offset.at(()) + sum(step * i for (step, _), i in zip(tile.dims, grid, strict=True))
    np.testing.assert_array_equal(found, wanted)
