"""A detector's scores: a convolution for each level, whose rows follow one another in one output."""

import numpy as np
import onnx
from onnx import helper

from tests.onnx_models import make_model

ANCHORS, CLASSES, CHANNELS = 3, 20, 32


def scores(*levels: tuple[int, int]) -> onnx.ModelProto:
    """Scores [1, classes, positions] of (rows, columns) levels "x0", "x1", ..., and their centres."""
    rng = np.random.default_rng(len(levels))
    weights = {"parts": np.array([2, 1, CLASSES])}
    nodes, shapes = [], {}
    for n, (rows, columns) in enumerate(levels):
        count, values = rows * columns * ANCHORS, 3 + CLASSES
        shapes[f"x{n}"] = (1, CHANNELS, rows, columns)
        weights[f"w{n}"] = (rng.standard_normal((ANCHORS * values, CHANNELS, 1, 1)) / CHANNELS**0.5).astype("f")
        weights[f"shape{n}"] = np.array([1, count, values])
        weights[f"cells{n}"] = rng.standard_normal((1, count, 2)).astype(np.float32)
        nodes += [
            helper.make_node("Conv", [f"x{n}", f"w{n}"], [f"c{n}"], name=f"conv{n}"),
            helper.make_node("Transpose", [f"c{n}"], [f"t{n}"], perm=[0, 2, 3, 1]),
            helper.make_node("Reshape", [f"t{n}", f"shape{n}"], [f"r{n}"]),
            helper.make_node("Sigmoid", [f"r{n}"], [f"s{n}"]),
            helper.make_node("Split", [f"s{n}", "parts"], [f"xy{n}", f"likely{n}", f"class{n}"], axis=2),
            helper.make_node("Mul", [f"likely{n}", f"class{n}"], [f"score{n}"]),
            helper.make_node("Add", [f"xy{n}", f"cells{n}"], [f"centre{n}"]),
        ]
    every = range(len(levels))
    nodes.append(helper.make_node("Concat", [f"score{n}" for n in every], ["all"], axis=1))
    nodes.append(helper.make_node("Transpose", ["all"], ["y"], perm=[0, 2, 1]))
    nodes.append(helper.make_node("Concat", [f"centre{n}" for n in every], ["centres"], axis=1))
    return make_model(nodes, shapes, ["y", "centres"], weights)


def inputs_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random inputs."""
    rng = np.random.default_rng(9)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
