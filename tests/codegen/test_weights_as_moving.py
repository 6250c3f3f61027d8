"""A product with weights that would be turned around comes out of the PE array row by row: the same, and sooner."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check, on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron import BuildOptions, relay
from tvm_neuron.codegen import function
from tvm_neuron.codegen.kernels.weights_as_moving import WEIGHTS_AS_MOVING
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import Activation, Transpose
from tvm_neuron.neff import Neff
from tvm_neuron.sim import time_program


def logits(rows: int, depth: int, columns: int, has_bias: bool = False) -> onnx.ModelProto:
    """What a decoder ends with, of data that lie as a product before leaves them."""
    random = np.random.default_rng(rows + columns)
    weights = {
        "v": random.standard_normal((depth, depth)).astype(np.float32),
        "w": random.standard_normal((depth, columns)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "w"], ["m" if has_bias else "y"]),
    ]
    if has_bias:
        weights["b"] = random.standard_normal(columns).astype(np.float32)
        nodes.append(helper.make_node("Add", ["m", "b"], ["y"]))
    return make_model(nodes, {"x": (1, rows, depth)}, ["y"], weights)


def attention(tokens: int, channels: int) -> onnx.ModelProto:
    """Shares of values, which the product with them reads token by token."""
    random = np.random.default_rng(tokens)
    weights = {name: random.standard_normal((channels, channels)).astype(np.float32) / 16 for name in "vqko"}
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["values"]),
        helper.make_node("MatMul", ["x", "q"], ["queries"]),
        helper.make_node("MatMul", ["x", "k"], ["keys"]),
        helper.make_node("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["queries", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "values"], ["found"]),
        helper.make_node("MatMul", ["found", "o"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, tokens, channels)}, ["y"], weights)


def usual(model: onnx.ModelProto) -> Neff:
    """The model's program without the step."""
    with without(WEIGHTS_AS_MOVING.name):
        return compile_model(model, "neuron/inf2")


def count(neff: Neff, kind: type) -> int:
    return sum(isinstance(each, kind) for _, each in neff.program.instructions())


@pytest.mark.parametrize(
    "model", [logits(64, 256, 1000), logits(130, 200, 600), logits(64, 256, 1000, True), attention(64, 128)]
)
def test_it_is_quicker_and_turns_nothing(model: onnx.ModelProto) -> None:
    found, other = compile_model(model, "neuron/inf2"), usual(model)
    assert count(found, Transpose) < count(other, Transpose)
    assert count(found, Activation) < count(other, Activation)
    now, then = (time_program(each.program, each.device).total_ps for each in (found, other))
    assert now < then


def test_they_are_among_those_that_come_in_every_run() -> None:
    """Both weights in bfloat16, whichever operand they are."""
    memory = compile_model(logits(64, 256, 1000), "neuron/inf2").memory
    assert memory["weights_streamed"] == 2 * 256 * (256 + 1000)


@pytest.mark.parametrize("rows", [1, 8])
def test_few_rows_are_left_as_they_are(rows: int) -> None:
    """Of so few the array would use a row or two, for as many columns."""
    model = logits(rows, 256, 1000)
    assert compile_model(model, "neuron/inf2").program == usual(model).program


@pytest.mark.parametrize("options", [BuildOptions(static_weights=True), BuildOptions(pipeline_cores=2)])
def test_weights_that_may_stay_are_left_as_they_are(options: BuildOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("they were asked to move")

    monkeypatch.setattr(function, "weights_as_moving", refuse)
    mod, params = relay.frontend.from_onnx(logits(64, 256, 1000))
    relay.build(mod, target="neuron/inf2", params=params, options=options)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("sizes", [(64, 256, 1000), (300, 100, 513), (33, 384, 130)])
def test_as_onnxruntime(sizes: tuple[int, int, int], has_bias: bool, precision: tuple[str, str]) -> None:
    """Rounded are the operands of two products; the first one's error is that of the second one's operand."""
    x = np.random.default_rng(7).standard_normal((1, *sizes[:2])).astype(np.float32) / np.float32(sizes[1] ** 0.5)
    check(logits(*sizes, has_bias), {"x": x}, *precision)


def test_a_bias_is_added_to_the_bit() -> None:
    """Its three parts add up to it, and PSUM adds in float32: of products that are all 0, it alone is left."""
    model = logits(64, 128, 700, True)
    (found,) = on_core(model, {"x": np.zeros((1, 64, 128), np.float32)}, "inf2")
    bias = next(onnx.numpy_helper.to_array(each) for each in model.graph.initializer if each.name == "b")
    np.testing.assert_array_equal(found, np.broadcast_to(bias, found.shape))


@pytest.mark.slow
@settings(max_examples=16)
@given(
    st.integers(1, 300), st.integers(1, 400), st.integers(1, 1100), st.booleans(), st.sampled_from(PRECISIONS),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_any_sizes(rows: int, depth: int, columns: int, has_bias: bool, precision: tuple[str, str], seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((1, rows, depth)).astype(np.float32) / np.float32(depth**0.5)
    check(logits(rows, depth, columns, has_bias), {"x": x}, *precision)


@pytest.mark.slow
@settings(max_examples=8)
@given(st.integers(2, 200), st.sampled_from((32, 96, 128, 320)), st.sampled_from(PRECISIONS))
def test_values_of_attention(tokens: int, channels: int, precision: tuple[str, str]) -> None:
    x = np.random.default_rng(tokens).standard_normal((1, tokens, channels)).astype(np.float32)
    check(attention(tokens, channels), {"x": x}, *precision, roundings=16)
