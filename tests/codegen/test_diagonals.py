"""Grouped convolutions: what lies beside the blocks of their weights is made on the core, not brought from DRAM."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.graphs import layer, weights_moved
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen import zones
from tvm_neuron.codegen.emit.diagonals import diagonals
from tvm_neuron.codegen.emit.factored import MANY_BLOCKS, Factored, factored
from tvm_neuron.codegen.emit.weight_tiles import WeightTile
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Tile
from tvm_neuron.relay import graph_executor

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
    [
        (1, 1, 128, 0),
        (1, 1, 64, 64),
        (1, 2, 32, 32),
        (4, 4, 32, 0),
        (8, 4, 16, 0),
        (64, 32, 2, 0),
        (2, 1, 16, 96),
        (3, 3, 5, 0),
    ],
)
def test_the_instruction_makes_the_tile(depth: int, width: int, blocks: int, first: int) -> None:
    tile = _tile(depth, width, blocks, first)
    found = factored(tile)
    assert found is not None
    assert (found.blocks, found.numbers.shape) == (blocks, (first + depth * blocks, STEPS, width))
    assert np.array_equal(_made(found), tile.packed[0])


@given(st.data())
def test_what_has_numbers_in_one_block_of_each_row_is_made(data: st.DataObject) -> None:
    """In any order, as where rows lie one above the other for several taps; rows may have none."""
    rows, blocks, width = data.draw(st.integers(1, 128)), data.draw(st.integers(2, 32)), data.draw(st.integers(1, 4))
    block = data.draw(st.lists(st.integers(-1, blocks - 1), min_size=rows, max_size=rows))
    rng = np.random.default_rng(rows)
    packed = np.zeros((rows, STEPS, blocks, width), np.float32)
    for row, place in enumerate(block):
        if place >= 0:
            packed[row, :, place] = rng.uniform(1, 2, (STEPS, width))
    tile = WeightTile((0, blocks * width, 1), (((0, rows, 1), 0, 0),), packed.reshape(1, rows, -1), blocks * width)
    found = factored(tile)
    assert (found is None) == (max(block) < 0)
    assert found is None or np.array_equal(_made(found), tile.packed[0])


def _made(found: Factored) -> np.ndarray:
    """What the instruction makes where the mask and the numbers begin at byte 0."""
    instruction = found.make("float32", 0, 0, 0)
    rows = len(found.numbers)
    start = instruction.left.offset.base // 4
    memory = [found.mask[:rows, start:].astype(np.float32), found.numbers.reshape(rows, -1)]
    operands = [_read(array, side) for array, side in zip(memory, (instruction.left, instruction.right), strict=True)]
    return instruction.compute(*operands).reshape(rows, -1)


def _read(memory: np.ndarray, tile: Tile) -> np.ndarray:
    at = np.zeros(1, np.int64)
    for step, count in tile.dims:
        at = at[..., None] + np.arange(count) * step
    return memory[:, at[0]]


def test_what_has_more_comes_as_it_is() -> None:
    dense = _tile(8, 8, 1)
    assert factored(dense) is None
    assert factored(_tile(1, 1, 4), MANY_BLOCKS) is None
    twice = _tile(1, 1, 16)
    twice.packed[0, 3, 11] = 1.0  # beside number 3 of the same tap
    assert factored(twice) is None
    infinite = _tile(1, 1, 16)
    infinite.packed[0, 5, 5] = np.inf  # times a zero of the mask it would be NaN
    assert factored(infinite) is None


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


def _layers(channels: int, groups: int, width: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """8 convolutions of small maps, and data; the input is called as the tensor of numbers of tiles would be."""
    rng = np.random.default_rng([channels, groups, width])
    nodes, weights, last = [], {}, "diagonals"
    for number in range(8):
        shape = (channels, channels // groups, width, width)
        weights[f"w{number}"] = rng.standard_normal(shape).astype(np.float32) / width
        weights[f"b{number}"] = rng.standard_normal(channels).astype(np.float32)
        sources = [last, f"w{number}", f"b{number}"]
        pads = [width // 2] * 4
        nodes.append(helper.make_node("Conv", sources, [f"c{number}"], group=groups, pads=pads))
        last = f"r{number}" if number < 7 else "y"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [last]))
    model = make_model(nodes, {"diagonals": (1, channels, 7, 7)}, ["y"], weights)
    return model, rng.standard_normal((1, channels, 7, 7)).astype(np.float32)


@pytest.mark.parametrize(("channels", "groups", "width"), [(512, 512, 3), (384, 384, 5), (256, 32, 3)])
@pytest.mark.parametrize("fp32_cast", ["all", "matmult"])
def test_some_are_made_where_a_network_waits_for_dram(channels: int, groups: int, width: int, fp32_cast: str) -> None:
    """Small maps have nothing else to wait for. The tiles are the same, and so is what is multiplied by them."""
    model, x = _layers(channels, groups, width)
    with without("choose_routes", "bring_inputs"):  # it comes into its padding by DMA, and weights come meanwhile
        found, moved = _run(model, x, fp32_cast)
    with without("with_diagonals", "choose_routes", "bring_inputs"):
        wanted, most = _run(model, x, fp32_cast)
    assert np.array_equal(found, wanted)
    assert moved < 0.85 * most


def test_all_come_where_their_numbers_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = _layers(256, 32, 3)
    with without("with_diagonals"):
        wanted, most = _run(model, x, "all")
    monkeypatch.setattr(zones, "factors_bytes", lambda *_: 64)
    found, moved = _run(model, x, "all")
    assert moved == most
    assert np.array_equal(found, wanted)


def _run(model: onnx.ModelProto, x: np.ndarray, fp32_cast: str) -> tuple[np.ndarray, int]:
    """What it gives on inf2, which is near what onnxruntime does, and the bytes of weights that come from DRAM."""
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"diagonals": x})
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron/inf2", params=params, options=BuildOptions(fp32_cast=fp32_cast))
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(diagonals=x)
    result = executor.get_output(0).numpy()
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    assert error < 8 * 2**-8  # each of 8 layers rounds both operands of its products to bfloat16, by up to 2^-9 each
    return result, tvm_neuron.report(library).dram_bytes_by_kind["weight"]
