"""An output that layers read, too, has its own dtype in SBUF: these don't run in tiles with who makes it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.codegen.layers import Layers
from tests.models.agreement import random_inputs
from tests.onnx_models import reference
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk

CHANNELS = 128
# Seven convolutions and a gate on operands of bfloat16, each half a unit of 2**-8 off, and twice that.
TOLERANCE = 2 * 2.0**-9 * np.sqrt(2 * 8)


def _both_are_outputs() -> onnx.ModelProto:
    """Two branches that meet in a concatenation, and a layer that reads it: both are outputs."""
    layers = Layers(0)
    conv, nodes = layers.conv, layers.nodes

    def op(kind: str, *inputs: str) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"{kind}{len(nodes)}"]))
        return str(nodes[-1].output[0])

    first = conv("x", "first", 16, CHANNELS, 1)
    half = conv(first, "half", CHANNELS, CHANNELS, 1)
    wide = conv(conv(first, "a", CHANNELS, CHANNELS, 3), "b", CHANNELS, CHANNELS, 3)
    gated = op("Mul", wide, conv(op("GlobalAveragePool", wide), "gate", CHANNELS, CHANNELS, 1))
    last = conv(gated, "c", CHANNELS, CHANNELS, 3)
    waves = op("Mul", last, op("Tanh", op("Sin", op("Abs", last))))  # no function of the engines
    nodes.append(helper.make_node("Concat", [conv(waves, "d", CHANNELS, CHANNELS, 1), half], ["both"], axis=1))
    conv("both", "z", 2 * CHANNELS, 8, 1)
    return layers.model({"x": (1, 16, 40, 40)}, ["both", "z"])


def test_an_output_that_is_multiplied_too_in_little_memory(tmp_path: Path) -> None:
    model = _both_are_outputs()
    inputs = random_inputs(model)
    neff = compile_model(model, shrunk(tmp_path, "inf1", 26))
    assert neff.memory["spill"]  # in as much memory as inf1 has nothing runs in tiles
    actual = run(neff, inputs, "nest")
    for name, wanted in zip(("both", "z"), reference(model, inputs), strict=True):
        assert np.linalg.norm(actual[name] - wanted) / np.linalg.norm(wanted) < TOLERANCE
