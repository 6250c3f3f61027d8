"""What a build no longer needs goes at once: weights never wait for Python to look for cycles."""

import gc
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import relay

SMALLEST_BYTES = 4096


@pytest.fixture
def collector() -> Iterator[None]:
    """Python's collector off, then as it was; what it would free is kept in `gc.garbage`."""
    gc.collect()
    gc.freeze()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


def network() -> onnx.ModelProto:
    """A convolution with a scale and a residual, GELU, a dense layer, a softmax."""
    random = np.random.default_rng(0)
    shapes = {"w": (64, 64, 3, 3), "scale": (64, 1, 1), "v": (64, 96)}
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["a", "scale"], ["b"]),
        helper.make_node("Add", ["b", "x"], ["c"]),
        helper.make_node("Gelu", ["c"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, 64, 10, 10)}, ["y"], weights, opset=20)


def test_no_weight_waits_for_the_collector(collector: None) -> None:
    mod, params = relay.frontend.from_onnx(network())
    gc.collect()
    gc.garbage.clear()
    relay.build(mod, target="neuron", params=params)
    gc.collect()
    held = [value for waiting in gc.garbage for value in gc.get_referents(waiting) if isinstance(value, np.ndarray)]
    assert [value.shape for value in held if value.nbytes >= SMALLEST_BYTES] == []
