"""Grouped convolutions over few positions: their tiles lie in SBUF as several smaller ones, without zeros between."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.graphs import layer, weights_moved

SIDE = 7


def _check(channels: int, groups: int, out: int, size: int = SIDE) -> int:
    """Bytes of weights that a 3x3 layer moves on inf2; its result is onnxruntime's."""
    rng = np.random.default_rng([channels, groups, out])
    weights = rng.standard_normal((out, channels // groups, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], group=groups, pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    return weights_moved(layer(nodes, (1, channels, size, size), w=weights), rng, "neuron/inf2")


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
