"""write_through, write_moves_through: what is concatenated, then padded, moves in whole maps, not row by row."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.codegen.layers import Layers
from tests.stages.networks import compile_model, run
from tvm_neuron.isa import DmaCopy, Tile


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("channels", [40, 32])
@pytest.mark.parametrize("batch", [1, 2])
def test_concatenated_maps_move_whole(chip: str, channels: int, batch: int) -> None:
    layers = Layers(channels)
    for name in "abc":
        layers.conv("x", name, 16, channels, 1)
    layers.nodes.append(helper.make_node("Concat", ["a", "b", "c"], ["d"], axis=1))
    layers.conv("d", "y", 3 * channels, 24, 3)
    model = layers.model({"x": (batch, 16, 14, 14)}, ["y"])
    made = compile_model(model, f"neuron/{chip}")
    moves = [
        node.source
        for _, node in made.program.instructions()
        if isinstance(node, DmaCopy) and isinstance(node.source, Tile) and isinstance(node.target, Tile)
    ]
    assert bool(moves) == (channels % 32 > 0)  # no engine reaches partition 40
    assert all(source.dims == ((1, batch * 14 * 14),) for source in moves)
    x = np.random.default_rng(batch).standard_normal((batch, 16, 14, 14)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    # Two layers of bf16 products, each rounded to 2^-8, in sums of a size of 1: up to 5 of these deviations of 2^-7.
    np.testing.assert_allclose(run(made, {"x": x}, "strict")["y"], wanted, atol=0.05)
