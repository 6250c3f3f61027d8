"""Attention in windows whose rows and columns products read apart, as MaxViT has it."""

from math import prod

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.isa import Matmul

WINDOWS = 6


def network(window: tuple[int, int], heads: int, size: int) -> onnx.ModelProto:
    """Shares of all positions of a window, of each head, and the values with these shares."""
    weights = {
        "apart": np.array([WINDOWS, *window, heads, size]),
        "tokens": np.array([WINDOWS, heads, window[0] * window[1], size]),
    }
    nodes = []
    for name, part in (("x", "q"), ("z", "k"), ("w", "v")):
        nodes += [
            helper.make_node("Tanh", [name], [f"{part}.0"]),
            helper.make_node("Reshape", [f"{part}.0", "apart"], [f"{part}.1"]),
            helper.make_node("Transpose", [f"{part}.1"], [f"{part}.2"], perm=[0, 3, 1, 2, 4]),
            helper.make_node("Reshape", [f"{part}.2", "tokens"], [part]),
        ]
    nodes += [
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["s"]),
        helper.make_node("Softmax", ["s"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "v"], ["y"]),
    ]
    shapes = dict.fromkeys("xzw", (WINDOWS, *window, heads * size))
    return make_model(nodes, shapes, ["shares", "y"], weights)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "heads", "size", "chip"),
    [
        ((4, 4), 2, 32, "inf1"), ((4, 4), 3, 24, "inf2"), ((8, 8), 1, 64, "inf2"), ((7, 7), 2, 32, "inf1"),
        ((4, 32), 2, 32, "inf2"), ((3, 5), 3, 24, "inf2"), ((4, 4), 1, 32, "inf2"), ((12, 14), 1, 32, "inf2"),
    ],
)  # fmt: skip
def test_as_onnxruntime(window: tuple[int, int], heads: int, size: int, chip: str) -> None:
    model = network(window, heads, size)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")
    for name in ("shares", "y"):
        assert relative_error(found[name], case.exact[name]) < case.bounds[name]


@pytest.mark.parametrize("heads", [1, 2])
def test_all_positions_of_a_window_are_multiplied_at_once(heads: int) -> None:
    compiled = compile_model(network((4, 4), heads, 32), "neuron/inf2")
    products = [(counts, each) for counts, each in compiled.program.instructions() if isinstance(each, Matmul)]
    assert {each.stationary.partitions for _, each in products} == {32, 16}  # channels of a head, then positions
    assert sum(prod(counts) for counts, _ in products) == 2 * WINDOWS * heads
