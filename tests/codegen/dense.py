"""Dense layers as in DenseNet: each adds channels to one tensor, which all layers after it read."""

import numpy as np
import onnx
from onnx import helper

from tests.onnx_models import make_model


def dense(channels: int, layers: int = 3, size: int = 6, batch: int = 1) -> onnx.ModelProto:
    """Layers that each add 32 channels to what those before them made: norm, ReLU and convolution."""
    rng = np.random.default_rng(channels)
    weights, nodes, last = {}, [], "x"
    for i in range(layers):
        width = channels + 32 * i
        weights[f"w{i}"] = (rng.standard_normal((32, width, 3, 3)) / np.sqrt(9 * width)).astype(np.float32)
        for name in ("scale", "var"):
            weights[f"{name}{i}"] = rng.uniform(0.5, 1.5, width).astype(np.float32)
        for name in ("shift", "mean"):
            weights[f"{name}{i}"] = rng.standard_normal(width).astype(np.float32)
        norm = [last, *(f"{name}{i}" for name in ("scale", "shift", "mean", "var"))]
        nodes += [
            helper.make_node("BatchNormalization", norm, [f"n{i}"], name=f"norm{i}"),
            helper.make_node("Relu", [f"n{i}"], [f"r{i}"]),
            helper.make_node("Conv", [f"r{i}", f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]),
            helper.make_node("Concat", [last, f"c{i}"], [f"y{i}" if i < layers - 1 else "y"], axis=1),
        ]
        last = f"y{i}"
    return make_model(nodes, {"x": (batch, channels, size, size)}, ["y"], weights)
