"""What a norm adds to each channel, added behind the layers that read it: beside onnxruntime."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.sim import time_program

ROWS, CHANNELS = 65, 128


@dataclass(frozen=True)
class Case:
    """A norm and what reads it: so many layers, a sum that goes around one, and what no constant can go behind."""

    layers: int = 1
    has_bias: bool = True
    goes_around: bool = False
    is_read: bool = False
    is_windowed: bool = False
    channels: int = CHANNELS  # of each layer's result


def network(case: Case) -> onnx.ModelProto:
    random = np.random.default_rng(7)
    weights = {name: random.standard_normal(CHANNELS).astype(np.float32) for name in ("scale", "shift")}
    for n in range(case.layers):
        weights[f"b{n}"] = random.standard_normal(case.channels).astype(np.float32)
    weights["w"] = random.standard_normal((CHANNELS, CHANNELS)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Tanh", ["m"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["g"]),
        helper.make_node("Add", ["h", "g"], ["k"]),
        helper.make_node("LayerNormalization", ["k", "scale", "shift"], ["n"], axis=-1),
    ]
    outputs = []
    for n in range(case.layers):
        weights[f"w{n}"] = random.standard_normal((CHANNELS, case.channels)).astype(np.float32)
        nodes.append(helper.make_node("MatMul", ["n", f"w{n}"], [f"m{n}"]))
        outputs.append(f"m{n}")
        if case.has_bias:
            nodes.append(helper.make_node("Add", [f"m{n}", f"b{n}"], [f"a{n}"]))
            outputs[-1] = f"a{n}"
    if case.goes_around:
        nodes += [helper.make_node("Add", ["n", outputs[0]], ["s"]), helper.make_node("Tanh", ["s"], ["t"])]
        outputs[0] = "t"
    if case.is_windowed:  # padding is 0, not what is added
        weights["v"] = random.standard_normal((5, 1, 3, 3)).astype(np.float32)
        shape = np.int64([1, 1, ROWS, CHANNELS])
        nodes += [
            helper.make_node("Reshape", ["n", "shape"], ["image"]),
            helper.make_node("Conv", ["image", "v"], ["c"], pads=[1, 1, 1, 1]),
        ]
        weights["shape"] = shape
        outputs.append("c")
    if case.is_read:
        nodes.append(helper.make_node("Sigmoid", ["n"], ["r"]))
        outputs.append("r")
    return make_model(nodes, {"x": (ROWS, CHANNELS)}, outputs, weights)


CASES = st.builds(
    Case, st.integers(1, 3), st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([1, CHANNELS])
)


@given(CASES, st.sampled_from(PRECISIONS))
@example(Case(channels=1), ("inf2", "all"))
@example(Case(channels=1, has_bias=False), ("inf1", "all"))
@settings(max_examples=8)
def test_norms(case: Case, precision: tuple[str, str]) -> None:
    """In float32, too, what comes between the roundings of the inputs and of the outputs is sums of 128 products."""
    x = np.random.default_rng(1).standard_normal((ROWS, CHANNELS)).astype(np.float32)
    check(network(case), {"x": x}, *precision, roundings=16)


def modelled_ps(case: Case) -> int:
    return time_program(compile_model(network(case), "neuron/inf2").program, load_device("inf2")).total_ps


@pytest.mark.parametrize("case", [Case(), Case(3), Case(2, has_bias=False), Case(goes_around=True)])
def test_a_norm_takes_less(case: Case) -> None:
    moved = modelled_ps(case)
    with without("add_after_contractions"):
        assert modelled_ps(case) > moved


@pytest.mark.parametrize("case", [Case(is_read=True), Case(is_windowed=True), Case(has_bias=False, goes_around=True)])
def test_what_others_read_stays(case: Case) -> None:
    with_it = compile_model(network(case), "neuron/inf2").program
    with without("add_after_contractions"):
        assert compile_model(network(case), "neuron/inf2").program == with_it


def test_what_would_not_be_finite_stays() -> None:
    """3e38 twice: with weights of a different sign the sum is 0, in whatever order."""
    model = network(Case(has_bias=False))
    values = {"shift": np.full(CHANNELS, 3e38), "w0": np.tile([[2.0], [-2.0]], (CHANNELS // 2, CHANNELS))}
    for weight in model.graph.initializer:
        if weight.name in values:
            weight.CopyFrom(numpy_helper.from_array(values[weight.name].astype(np.float32), weight.name))
    with_it = compile_model(model, "neuron/inf2").program
    with without("add_after_contractions"):
        assert compile_model(model, "neuron/inf2").program == with_it
