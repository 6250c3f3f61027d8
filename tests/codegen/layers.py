"""Layers: nodes of a network that a test writes, with random weights; `model` of them is its graph."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from tests.onnx_models import make_model


class Layers:
    """Nodes in their order, and the weights of its convolutions, whose outputs are about as large as their inputs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, NDArray[np.float32]] = {}

    def conv(self, source: str, name: str, inputs: int, outputs: int, width: int) -> str:
        """A convolution with a square window that keeps the size of the map."""
        shape = (outputs, inputs, width, width)
        values = self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        self.weights[f"{name}.w"] = values.astype(np.float32)
        attributes = {"kernel_shape": [width, width], "pads": [width // 2] * 4}
        self.nodes.append(helper.make_node("Conv", [source, f"{name}.w"], [name], name=name, **attributes))
        return name

    def model(self, inputs: Mapping[str, tuple[int, ...]], outputs: Sequence[str]) -> onnx.ModelProto:
        """The network of all nodes so far."""
        return make_model(self.nodes, dict(inputs), list(outputs), self.weights)
