"""A long reduction starts while what it reads is still computed: in parts, whose results are reduced at last."""

import onnx
import pytest
from onnx import helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.isa import TensorReduce


def pooled(kind: str, size: tuple[int, int], channels: int = 160, batch: int = 1) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "z"], ["s"]), helper.make_node(kind, ["s"], ["p"])]
    nodes.append(helper.make_node("Mul", ["s", "p"], ["y"]))
    return make_model(nodes, dict.fromkeys("xz", (batch, channels, *size)), ["y"], {})


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("kind", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("size", [(28, 28), (31, 40), (3, 700), (600, 2)])
def test_as_onnxruntime(kind: str, size: tuple[int, int], chip: str) -> None:
    model = pooled(kind, size)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@pytest.mark.parametrize(("size", "parts"), [((16, 32), 0), ((28, 28), 4), ((3, 700), 3)])
def test_parts_of_up_to_256_elements(size: tuple[int, int], parts: int) -> None:
    program = compile_model(pooled("GlobalAveragePool", size, channels=64), "neuron/inf2").program
    found = [part for _, part in program.instructions() if isinstance(part, TensorReduce)]
    assert len(found) == (parts + 1 if parts else 1)
