"""A model that the comparisons of the tests are about."""

import numpy as np
import onnx
from onnx import helper

from tests.onnx_models import make_model


def convolved() -> onnx.ModelProto:
    """Relu(Conv(x) * scale + shift) twice, as a folded batch norm has it."""
    rng = np.random.default_rng(1)
    weights = {}
    nodes = []
    for n, source in ((0, "x"), (1, "r0")):
        weights |= {
            f"w{n}": rng.standard_normal((8, 8, 3, 3)).astype("float32") / 8,
            f"scale{n}": (1 + rng.random((8, 1, 1))).astype("float32"),
            f"shift{n}": rng.standard_normal((8, 1, 1)).astype("float32"),
        }
        nodes += [
            helper.make_node("Conv", [source, f"w{n}"], [f"c{n}"], name=f"conv{n}", pads=[1, 1, 1, 1]),
            helper.make_node("Mul", [f"c{n}", f"scale{n}"], [f"m{n}"], name=f"mul{n}"),
            helper.make_node("Add", [f"m{n}", f"shift{n}"], [f"a{n}"], name=f"add{n}"),
            helper.make_node("Relu", [f"a{n}"], [f"r{n}"], name=f"relu{n}"),
        ]
    return make_model(nodes, {"x": [1, 8, 6, 6]}, ["r1"], weights)
