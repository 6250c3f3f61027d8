"""Casts of positions to integers take no instructions; those of other floats do, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen import call_blocks, integers

DATA = {"x": np.random.default_rng(3).standard_normal((20, 7)).astype(np.float32) * 3}


def chosen(choose: str) -> onnx.ModelProto:
    """Rows of a table, by the places of the two largest of "x", or by floats that are no places."""
    node = helper.make_node
    weights = {"k": np.int64([2]), "table": np.arange(30, dtype=np.float32).reshape(10, 3), "two": np.float32(2.5)}
    found = {
        "TopK": [node("TopK", ["x", "k"], ["values", "places"], axis=1)],
        "Mod": [node("Mod", ["x", "two"], ["m"], fmod=1), node("Abs", ["m"], ["r"]),
                node("Cast", ["r"], ["places"], to=TensorProto.INT64)],
        "Sign": [node("Sign", ["x"], ["s"]), node("Abs", ["s"], ["r"]),
                 node("Cast", ["r"], ["places"], to=TensorProto.INT64)],
    }[choose]  # fmt: skip
    nodes = [*found, node("Gather", ["table", "places"], ["y"])]
    return make_model(nodes, {"x": (20, 7)}, ["y"], weights)


@pytest.mark.parametrize("precision", PRECISIONS[2:])
@pytest.mark.parametrize("choose", ["TopK", "Mod", "Sign"])
def test_chosen_rows(choose: str, precision: tuple[str, str]) -> None:
    check(chosen(choose), DATA, *precision)


@pytest.mark.parametrize(("choose", "is_whole"), [("TopK", True), ("Sign", True), ("Mod", False)])
def test_only_whole_numbers_are_taken_as_they_are(choose: str, is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = _instructions(chosen(choose))
    monkeypatch.setattr(call_blocks, "_templates", {})
    monkeypatch.setattr(integers, "is_exact", lambda _expr: False)
    assert (usual < _instructions(chosen(choose))) == is_whole


def _instructions(model: onnx.ModelProto) -> int:
    return len(list(compile_model(model, "neuron/inf2").program.instructions()))
