"""Queries and keys that are scaled by numbers: the product of them is, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import Activation


def scores(rows: int, size: int, is_kept: bool = False) -> onnx.ModelProto:
    """Of rows of two inputs, through tanh; with `is_kept`, the scaled queries are an output, too."""
    node = helper.make_node
    nodes = [
        node("Tanh", ["q"], ["a"]), node("Mul", ["a", "root"], ["queries"]),
        node("Tanh", ["k"], ["b"]), node("Mul", ["b", "root"], ["scaled"]),
        node("Transpose", ["scaled"], ["keys"], perm=[0, 2, 1]), node("MatMul", ["queries", "keys"], ["y"]),
    ]  # fmt: skip
    outputs = ["y", *(["queries"] if is_kept else [])]
    shapes = {"q": (3, rows, size), "k": (3, rows, size)}
    return make_model(nodes, shapes, outputs, {"root": np.float32(size**-0.25)})


def data(rows: int, size: int) -> dict[str, np.ndarray]:
    """Random."""
    rng = np.random.default_rng(rows)
    return {name: rng.standard_normal((3, rows, size)).astype(np.float32) for name in "qk"}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("is_kept", [False, True])
def test_scaled_scores(is_kept: bool, precision: tuple[str, str]) -> None:
    check(scores(20, 32, is_kept), data(20, 32), *precision, roundings=10)


def test_operands_are_not_scaled() -> None:
    model = scores(64, 64)
    after = _activations(model)
    with without("scale_after_products"):
        assert after < _activations(model)


def _activations(model: onnx.ModelProto) -> int:
    program = compile_model(model, "neuron/inf2").program
    return sum(isinstance(each, Activation) for _, each in program.instructions())
