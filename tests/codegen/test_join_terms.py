"""Constants that are added one after the other: as one, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import TensorTensor

ROWS, CHANNELS = 24, 40
SHAPES = [(ROWS, CHANNELS), (1, CHANNELS), (CHANNELS,), (ROWS, 1), (1,), (1, 1)]
Terms = list[tuple[int, ...]]


def sums(terms: Terms, is_kept: bool = False) -> onnx.ModelProto:
    """tanh(x) and constants of these shapes, added in turn; with `is_kept`, the first sum is an output, too."""
    random = np.random.default_rng(len(terms))
    weights = {f"w{n}": random.standard_normal(shape).astype(np.float32) for n, shape in enumerate(terms)}
    names = ["t", *(f"s{n}" for n in range(len(terms)))]
    nodes = [helper.make_node("Tanh", ["x"], ["t"])]
    nodes += [helper.make_node("Add", [f"w{n}", names[n]], [names[n + 1]]) for n in range(len(terms))]
    nodes.append(helper.make_node("Tanh", [names[-1]], ["y"]))
    return make_model(nodes, {"x": (ROWS, CHANNELS)}, ["y", *(["s0"] if is_kept else [])], weights)


@given(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=4), st.booleans(), st.sampled_from(PRECISIONS))
def test_sums(terms: Terms, is_kept: bool, precision: tuple[str, str]) -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, CHANNELS)).astype(np.float32)
    check(sums(terms, is_kept), {"x": x}, *precision, roundings=8)


def test_what_would_not_be_finite_stays() -> None:
    """3e38 twice is no number that can be added; to -3e38, one after the other can."""
    model = sums([(CHANNELS,), (CHANNELS,)])
    for weight in model.graph.initializer:
        weight.CopyFrom(onnx.numpy_helper.from_array(np.full(CHANNELS, 3e38, np.float32), weight.name))
    model.graph.node[0].op_type = model.graph.node[-1].op_type = "Neg"
    check(model, {"x": np.full((ROWS, CHANNELS), 3e38, np.float32)}, "inf2", "none", roundings=8)


@pytest.mark.parametrize(("is_kept", "additions"), [(False, 1), (True, 2)])
def test_one_addition(is_kept: bool, additions: int) -> None:
    def count() -> int:
        program = compile_model(sums([SHAPES[0], SHAPES[0]], is_kept), "neuron/inf2").program
        return sum(isinstance(each, TensorTensor) for _, each in program.instructions())

    assert count() == additions
    with without("join_terms"):
        assert count() == 2
