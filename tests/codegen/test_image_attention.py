"""Attention over an image's pixels, as networks between convolutions have it: heads change places inside the core."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model

SIZE, CHANNELS = 5, 64
ROUNDINGS = 12
"""Operands of five contractions and of two products, one behind the other, and of what lies between them."""


def _model(heads: int, width: int, batch: int = 1) -> onnx.ModelProto:
    """Queries and keys of 32 channels, values of `width` that a depthwise convolution (with a border) reads, too."""
    rng, pixels, weights = np.random.default_rng(8), SIZE * SIZE, {}
    nodes: list[onnx.NodeProto] = []

    def conv(x: str, name: str, depth: int, channels: int, size: int = 1, group: int = 1) -> None:
        found = rng.standard_normal((channels, depth, size, size)) / np.sqrt(depth * size * size)
        weights[f"{name}_w"] = found.astype(np.float32)
        pads = {"pads": [size // 2] * 4, "kernel_shape": [size, size], "group": group}
        nodes.append(helper.make_node("Conv", [x, f"{name}_w"], [name], name, **pads))

    for name, own in (("q", 32), ("k", 32), ("v", width)):
        conv("x", name, CHANNELS, heads * own)
        weights[f"{name}_shape"] = np.array([batch, heads, own, pixels])
        nodes.append(helper.make_node("Reshape", [name, f"{name}_shape"], [f"{name}_heads"], f"{name}_heads"))
    conv("v", "near", 1, heads * width, 3, heads * width)
    weights |= {"scale": np.float32(32**-0.5), "image": np.array([batch, heads * width, SIZE, SIZE])}
    nodes += [
        helper.make_node("Transpose", ["q_heads"], ["q_rows"], "q_rows", perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q_rows", "k_heads"], ["scores"], "scores"),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"], "scaled"),
        helper.make_node("Softmax", ["scaled"], ["shares"], "softmax", axis=-1),
        helper.make_node("Transpose", ["v_heads"], ["v_rows"], "v_rows", perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["shares", "v_rows"], ["mixed"], "mixed"),
        helper.make_node("Transpose", ["mixed"], ["channels"], "channels", perm=[0, 1, 3, 2]),
        helper.make_node("Reshape", ["channels", "image"], ["far"], "far"),
        helper.make_node("Add", ["far", "near"], ["both"], "both"),
        helper.make_node("Relu", ["both"], ["positive"], "positive"),
    ]
    conv("positive", "y", heads * width, CHANNELS)
    return make_model(nodes, {"x": (batch, CHANNELS, SIZE, SIZE)}, ["y"], weights)


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
@pytest.mark.parametrize(("heads", "width", "batch"), [(4, 128, 1), (2, 64, 3), (4, 32, 2), (3, 24, 1), (2, 160, 1)])
def test_as_onnxruntime(heads: int, width: int, batch: int, chip: str, fp32_cast: str) -> None:
    x = np.random.default_rng(9).standard_normal((batch, CHANNELS, SIZE, SIZE)).astype(np.float32)
    check(_model(heads, width, batch), {"x": x}, chip, fp32_cast, ROUNDINGS)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("heads", "width"), [(4, 128), (2, 64), (4, 32)])
def test_nothing_goes_through_device_memory(heads: int, width: int, chip: str) -> None:
    """Engines reach the channels of each head as they lie, and write them side by side."""
    program = compile_model(_model(heads, width), f"neuron/{chip}").program
    assert not [tensor.name for tensor in program.tensors if tensor.kind == "scratch"]
