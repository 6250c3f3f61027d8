"""HardSwish, as one operator and as the four of older models, in two instructions where its operand is there."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import check, on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import Activation, ScalarTensorTensor, TensorScalar

NUMBERS = {"three": 3.0, "zero": 0.0, "six": 6.0, "sixth": 1 / 6, "minus": -1 / 6}


def model_of(kind: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    node = helper.make_node
    nodes = {
        "operator": [node("HardSwish", ["x"], ["y"])],
        "divided": [
            node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "six"], ["c"]),
            node("Mul", ["x", "c"], ["m"]), node("Div", ["m", "six"], ["y"]),
        ],
        "multiplied": [
            node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "six"], ["c"]),
            node("Mul", ["c", "sixth"], ["s"]), node("Mul", ["s", "x"], ["y"]),
        ],
        "negative": [
            node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "six"], ["c"]),
            node("Mul", ["c", "minus"], ["s"]), node("Mul", ["s", "x"], ["y"]),
        ],
        "upside down": [
            node("Add", ["x", "three"], ["a"]), node("Min", ["a", "minus"], ["b"]), node("Max", ["b", "zero"], ["c"]),
            node("Mul", ["c", "x"], ["y"]),
        ],
    }[kind]  # fmt: skip
    used = {name for each in nodes for name in each.input} & NUMBERS.keys()
    return make_model(nodes, {"x": shape}, ["y"], {name: np.array(NUMBERS[name], np.float32) for name in used})


def wide(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers on both sides of the ramp and on it, with its corners, an infinity and NaN."""
    x = (4 * np.random.default_rng(sum(shape)).standard_normal(shape)).astype(np.float32)
    x.flat[:5] = -3, 3, 0, np.inf, np.nan
    return x


@pytest.mark.parametrize(("chip", "precision"), [("inf1", "all"), ("inf2", "none")])
@pytest.mark.parametrize("kind", ["operator", "divided", "multiplied", "negative", "upside down"])
def test_as_onnxruntime(kind: str, chip: str, precision: str) -> None:
    """With the wrong sign or an upper bound below zero, too, which are no ramps."""
    shape = (2, 40, 60)
    x = wide(shape)
    finite = np.where(np.isfinite(x), x, 1).astype(np.float32)
    check(model_of(kind, shape), {"x": finite}, chip, precision)


def test_what_is_no_number() -> None:
    (found,) = on_core(model_of("operator", (2, 40, 60)), {"x": wide((2, 40, 60))}, "inf2")
    assert np.isnan(found.flat[4])
    assert found.flat[3] == np.inf
    assert np.isfinite(found.flat[5:]).all()


@pytest.mark.parametrize("kind", ["operator", "divided", "multiplied"])
def test_two_instructions(kind: str) -> None:
    program = compile_model(model_of(kind, (1, 40, 60)), "neuron/inf2").program
    found = [step for _, step in program.instructions()]
    arithmetic = [step for step in found if isinstance(step, Activation | ScalarTensorTensor | TensorScalar)]
    assert [type(step) for step in arithmetic] == [Activation, ScalarTensorTensor]
