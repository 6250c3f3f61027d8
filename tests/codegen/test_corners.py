"""Grouped convolutions over few positions: their tiles lie in SBUF as several smaller ones, without zeros between."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import tvm_neuron
from tests.codegen.graphs import layer
from tvm_neuron import relay
from tvm_neuron.relay import graph_executor

SIDE = 7


def _check(channels: int, groups: int, out: int, size: int = SIDE) -> int:
    """Bytes of weights that a 3x3 layer moves on inf2; its result is onnxruntime's."""
    rng = np.random.default_rng([channels, groups, out])
    weights = rng.standard_normal((out, channels // groups, 3, 3)).astype(np.float32)
    shape = (1, channels, size, size)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], group=groups, pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    model = layer(nodes, shape, w=weights)
    x = rng.standard_normal(shape).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron/inf2", params=params)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    error = np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected)
    assert error < 2**-8  # both operands are rounded to bf16, each by up to 2^-9; the sums stay in float32
    return tvm_neuron.report(library).dram_bytes_by_kind["weight"]


@pytest.mark.parametrize(
    ("channels", "groups", "out"),
    [(128, 128, 128), (384, 384, 384), (320, 320, 320), (256, 32, 256), (64, 64, 128), (128, 128, 256)],
)
def test_two_corners_of_64_columns(channels: int, groups: int, out: int) -> None:
    assert _check(channels, groups, out) <= -(-out // 128) * 128 * 9 * 64 * 2


@pytest.mark.parametrize(
    ("channels", "groups", "out"),
    [(96, 96, 96), (256, 4, 256), (200, 200, 200), (128, 2, 128), (128, 2, 96)],
)
def test_other_groups(channels: int, groups: int, out: int) -> None:
    assert _check(channels, groups, out) <= -(-out // 128) * 128 * 9 * 128 * 2


def test_the_array_has_whole_tiles_where_it_takes_longer_than_the_dram() -> None:
    assert _check(128, 128, 128, size=28) == 128 * 9 * 128 * 2
