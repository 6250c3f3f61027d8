"""Moves between partitions in other orders go through device memory, also where several axes run over partitions."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.program.text import print_program


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_row_of_flattened_maps_is_an_output(at: int, chip: str) -> None:
    """The rows that a scatter wrote lie on partitions as two axes of the output."""
    rng = np.random.default_rng(8004)
    nodes = [
        helper.make_node("ScatterND", ["x", "places", "updates"], ["written"]),
        helper.make_node("Flatten", ["written"], ["flat"], axis=1),
        helper.make_node("Split", ["flat", "sizes"], ["first", "second"], axis=0),
        helper.make_node("Squeeze", [("first", "second")[at], "axes"], ["y"]),
    ]
    weights = {
        "places": rng.integers(0, 7, (6, 3)),
        "updates": rng.standard_normal(6).astype("float32"),
        "sizes": np.int64([32, 1] if at else [1, 32]),
        "axes": np.int64([0]),
    }
    model = make_model(nodes, {"x": [33, 7, 7]}, ["y"], weights)
    check(model, {"x": rng.standard_normal((33, 7, 7)).astype("float32")}, chip, "all")


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_a_column_becomes_a_row_through_the_array(chip: str) -> None:
    """Storing it element by element takes longer, also where the DMA transposes what it loads at a rate."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["means"]),
        helper.make_node("Flatten", ["means"], ["flat"], axis=1),
        helper.make_node("Softmax", ["flat"], ["y"], axis=1),
    ]
    compiled = compile_model(make_model(nodes, {"x": [1, 2000, 5, 5]}, ["y"], {}), f"neuron/{chip}")
    assert not [tensor.name for tensor in compiled.program.tensors if tensor.kind == "scratch"]
    assert "nc_transpose" in print_program(compiled.program)
