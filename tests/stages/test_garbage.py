"""What a build no longer needs goes at once: weights never wait for Python to look for cycles, which it seldom does."""

import gc
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.codegen.collector import seldom_collected

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


@pytest.fixture
def usual() -> Iterator[list[str]]:
    """Python looks for cycles as it does by itself, not as in this session of tests; how often it has begun to."""
    before, runs = gc.get_threshold(), list[str]()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    gc.callbacks.append(lambda phase, _: runs.append(phase))
    try:
        yield runs
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*before)
        gc.freeze()


def test_cycles_are_looked_for_seldom_and_then_as_before(usual: list[str]) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collected():
        assert gc.get_freeze_count() > before[1]
        with seldom_collected():
            kept = [[] for _ in range(50_000)]  # type: ignore[var-annotated]
        more = [[] for _ in range(40_000)]  # type: ignore[var-annotated]
        assert not usual
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    assert len(kept) + len(more) == 90_000


def test_what_the_caller_froze_stays_frozen(usual: list[str]) -> None:
    """It is not among what Python looks through. (How many are frozen changes: they go once nobody has them.)"""
    mine = [usual]
    gc.freeze()
    with seldom_collected():
        new = [usual]
        assert _is_looked_at(new)
        assert not _is_looked_at(mine)
    assert not _is_looked_at(mine)
    gc.unfreeze()
    assert _is_looked_at(mine)


def _is_looked_at(found: list[list[str]]) -> bool:
    return any(each is found for each in gc.get_objects())


def test_a_build_is_seldom_interrupted(usual: list[str]) -> None:
    mod, params = relay.frontend.from_onnx(network())
    usual.clear()
    relay.build(mod, target="neuron", params=params)
    assert usual.count("start") < 6  # in normalising and linking; inside of the rest none, where it would be 30
