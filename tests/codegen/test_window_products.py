"""Attention in windows whose rows and columns products read apart, as MaxViT has it."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run

WINDOWS = 6


def network(window: tuple[int, int], heads: int, size: int) -> onnx.ModelProto:
    """Scores of all positions of a window, of each head."""
    weights = {
        "apart": np.array([WINDOWS, *window, heads, size]),
        "tokens": np.array([WINDOWS, heads, window[0] * window[1], size]),
    }
    nodes = []
    for name, part in (("x", "q"), ("z", "k")):
        nodes += [
            helper.make_node("Tanh", [name], [f"{part}.0"]),
            helper.make_node("Reshape", [f"{part}.0", "apart"], [f"{part}.1"]),
            helper.make_node("Transpose", [f"{part}.1"], [f"{part}.2"], perm=[0, 3, 1, 2, 4]),
            helper.make_node("Reshape", [f"{part}.2", "tokens"], [part]),
        ]
    nodes += [
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    return make_model(nodes, dict.fromkeys("xz", (WINDOWS, *window, heads * size)), ["y"], weights)


@pytest.mark.parametrize(
    ("window", "heads", "size", "chip"),
    [
        ((4, 4), 2, 32, "inf1"), ((4, 4), 3, 24, "inf2"), ((8, 8), 1, 64, "inf2"), ((7, 7), 2, 32, "inf1"),
        ((4, 32), 2, 32, "inf2"), ((3, 5), 3, 24, "inf2"),
    ],
)  # fmt: skip
def test_as_onnxruntime(window: tuple[int, int], heads: int, size: int, chip: str) -> None:
    model = network(window, heads, size)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]
