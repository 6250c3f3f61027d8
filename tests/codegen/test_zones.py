"""Zones: what temporaries and constants take of each SBUF partition, and what they don't."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.zones import Zones, divide
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.rule import load_rules


def pooled(kind: str, **window: list[int]) -> onnx.ModelProto:
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node(kind, ["s"], ["y"], **window)]
    return make_model(nodes, {"x": (1, 160, 30, 30)}, ["y"], {})


def less_largest() -> onnx.ModelProto:
    nodes = [helper.make_node("ReduceMax", ["x", "axes"], ["r"]), helper.make_node("Sub", ["x", "r"], ["y"])]
    return make_model(nodes, {"x": (1, 160, 30, 30)}, ["y"], {"axes": np.array([3])})


WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2]}
STRAIGHT = {"windows": pooled("MaxPool", **WINDOW), "rows, subtracted": less_largest()}  # with the other sign
KEPT = {
    "means of windows": pooled("AveragePool", **WINDOW), "means": pooled("GlobalAveragePool"),
    "one value in parts": pooled("GlobalMaxPool"),
}  # fmt: skip


def zones_of(model: onnx.ModelProto, chip: str) -> Zones:
    device = load_device(chip)
    kernels, partition_of = make_kernels(graph_of(model), load_rules(), device)
    return divide(kernels, partition_of, device, 0, 0)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("name", [*STRAIGHT, *KEPT])
def test_only_reductions_that_go_elsewhere_than_to_their_output_have_room(name: str, chip: str) -> None:
    """And all are what onnxruntime computes."""
    model = (STRAIGHT | KEPT)[name]
    assert (zones_of(model, chip).reduced_bytes > 0) == (name in KEPT)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]
