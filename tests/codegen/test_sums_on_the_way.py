"""Sums that ACT keeps of what it makes: softmax, norms and others beside NumPy in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import ROUNDING, on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import ActivationReduce, TensorReduce

Array = Any  # of NumPy


def softmax(x: Array) -> Array:
    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


def layer_norm(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)


def rms_norm(x: Array) -> Array:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5)


def share(x: Array) -> Array:
    made = 1 / (1 + np.exp(-x))
    return made / made.sum(-1, keepdims=True)


REFERENCES: dict[str, Callable[[Array], Array]] = {
    "softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm, "rms_norm of powers": rms_norm, "share": share
}  # fmt: skip


def model_of(kind: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    node, last = helper.make_node, {"axes": np.array([-1])}
    weights: dict[str, Array] = {"eps": np.array(1e-5, np.float32), "two": np.array(2, np.float32)}
    normed = [
        node("ReduceMean", ["s", "axes"], ["m"]), node("Add", ["m", "eps"], ["e"]), node("Sqrt", ["e"], ["r"]),
        node("Div", ["x", "r"], ["y"]),
    ]  # fmt: skip
    nodes = {
        "softmax": [node("Softmax", ["x"], ["y"])],
        "layer_norm": [node("LayerNormalization", ["x", "gamma"], ["y"])],
        "rms_norm": [node("Mul", ["x", "x"], ["s"]), *normed],
        "rms_norm of powers": [node("Pow", ["x", "two"], ["s"]), *normed],
        "share": [
            node("Sigmoid", ["x"], ["s"]), node("ReduceSum", ["s", "axes"], ["m"]), node("Div", ["s", "m"], ["y"])
        ],
    }[kind]  # fmt: skip
    used = {name for each in nodes for name in each.input}
    weights |= {**last, "gamma": np.ones(shape[-1:], np.float32)}
    return make_model(nodes, {"x": shape}, ["y"], {k: np.asarray(v) for k, v in weights.items() if k in used})


def off(found: Array, wanted: Array, once: float) -> float:
    """The largest error in roundings of the largest number of its row."""
    largest = np.abs(wanted).max(-1, keepdims=True)
    return float((np.abs(found - wanted) / np.maximum(largest, 1e-20)).max() / once)


@pytest.mark.parametrize(("chip", "precision"), [("inf1", "all"), ("inf2", "none")])
@pytest.mark.parametrize("shape", [(3, 130, 197), (5, 1500), (2, 65), (7, 1)])
@pytest.mark.parametrize("kind", REFERENCES)
def test_beside_float64(kind: str, shape: tuple[int, ...], chip: str, precision: str) -> None:
    """Elements are rounded where they are kept, and summed before that, in float32."""
    x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    found = on_core(model_of(kind, shape), {"x": x}, chip, precision)[0]
    assert off(found, REFERENCES[kind](x.astype(np.float64)), max(ROUNDING[precision], 2.0**-18)) < 3


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_large_means(chip: str) -> None:
    """The variance is that around the mean, in two passes: a mean of 1000 deviations costs ten bits of float32's 24."""
    x = (1000 + np.random.default_rng(3).standard_normal((130, 200))).astype(np.float32)
    found = on_core(model_of("layer_norm", x.shape), {"x": x}, chip)[0]
    assert off(found, layer_norm(x.astype(np.float64)), 2.0**-24) < 1000


def test_masks_in_softmax() -> None:
    """Minus infinity is left out, a row of one large number is shared out evenly."""
    x = np.random.default_rng(4).standard_normal((130, 200)).astype(np.float32)
    x[:, 150:], x[7], x[9, 1:] = -np.inf, -1e9, -np.inf
    found = on_core(model_of("softmax", x.shape), {"x": x}, "inf2")[0]
    assert (found[:7, 150:] == 0).all()
    assert off(found, softmax(x.astype(np.float64)), 2.0**-20) < 1


@pytest.mark.parametrize(
    ("kind", "columns", "is_kept"),
    [
        ("softmax", 197, True),
        ("rms_norm", 2048, True),
        ("rms_norm", 16, False),
        ("rms_norm of powers", 2048, True),
    ],
)
def test_where_it_takes_less_time(kind: str, columns: int, is_kept: bool) -> None:
    """Each instruction of ACT makes a single row then; short rows are made and summed many at once."""
    program = compile_model(model_of(kind, (3, 128, columns)), "neuron/inf2").program
    found = [instruction for _, instruction in program.instructions()]
    sums = [part for part in found if isinstance(part, TensorReduce) and part.op == "add"]
    assert any(isinstance(part, ActivationReduce) for part in found) == is_kept
    assert len(sums) == (0 if is_kept else 1)
