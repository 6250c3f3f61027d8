"""What reads a tensor from its end: access patterns only rise, so no instruction may take a falling one over."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.codegen.on_core import on_core
from tests.onnx_models import make_model

Array = Any  # of NumPy


def _softmax(x: Array) -> Array:
    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


def _layer_norm(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


READERS: dict[str, tuple[str, dict[str, Any], Callable[[Array], Array]]] = {
    "sum of squares": ("ReduceSumSquare", {"axes": [1, 2]}, lambda x: (x * x).sum((1, 2), keepdims=True)),
    "length": ("ReduceL2", {"axes": [0, 1]}, lambda x: np.sqrt((x * x).sum((0, 1), keepdims=True))),
    "sum of exponentials": ("ReduceLogSumExp", {"axes": [2]}, lambda x: np.log(np.exp(x).sum(2, keepdims=True))),
    "softmax": ("Softmax", {"axis": -1}, _softmax),
    "norm": ("LayerNormalization", {"axis": -1}, _layer_norm),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reader", READERS)
def test_readers_of_a_reversed_tensor(reader: str, axis: int) -> None:
    """What it is reversed from is made on the core, so that its readers may read that."""
    op, attributes, reference = READERS[reader]
    x = np.random.default_rng(axis).standard_normal((12, 4, 9)).astype("float32")
    weights = {"start": [-1], "end": [-100], "axis": [axis], "step": [-1]}
    inputs = ["back"]
    if op.startswith("Reduce"):
        inputs, weights["axes"], attributes = [*inputs, "axes"], attributes["axes"], {}
    arrays = {name: np.array(value) for name, value in weights.items()}
    if op == "LayerNormalization":
        inputs, arrays["scale"] = [*inputs, "scale"], np.ones(9, "float32")
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("Slice", ["positive", "start", "end", "axis", "step"], ["back"]),
        helper.make_node(op, inputs, ["y"], **attributes),
    ]
    (found,) = on_core(make_model(nodes, {"x": x.shape}, ["y"], arrays, opset=18), {"x": x}, "inf2", "none")
    wanted = reference(np.flip(np.maximum(x, 0), axis).astype(np.float64))
    # sums of up to 108 numbers, functions of ACT good to 1e-5
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
