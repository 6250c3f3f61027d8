"""Guarded softmaxes that divide what comes of a product: rows that are masked or no numbers, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import ROUNDING, on_core
from tests.codegen.test_guard_rows import data
from tests.onnx_models import make_model, reference
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.sim import time_program

Sizes = tuple[int, int, int, int]


def attention(heads: int, rows: int, keys: int, size: int, also: str = "") -> onnx.ModelProto:
    """Of scores and values to tokens of all heads, times weights; `also` is an output beside."""
    node, wide = helper.make_node, heads * size
    nodes = [
        node("Softmax", ["scores"], ["weights"], axis=-1), node("IsNaN", ["weights"], ["bad"]),
        node("Where", ["bad", "zero", "weights"], ["guarded"]), node("Reshape", ["values", "by_head"], ["v"]),
        node("Transpose", ["v"], ["vt"], perm=[1, 0, 2]), node("MatMul", ["guarded", "vt"], ["product"]),
        node("Transpose", ["product"], ["tokens"], perm=[1, 0, 2]), node("Reshape", ["tokens", "flat"], ["joined"]),
        node("MatMul", ["joined", "projection"], ["y"]),
    ]  # fmt: skip
    random = np.random.default_rng(heads + rows)
    constants = {
        "zero": np.zeros((), np.float32), "by_head": np.int64([keys, heads, size]), "flat": np.int64([rows, wide]),
        "projection": (random.standard_normal((wide, 48)) / np.sqrt(wide)).astype(np.float32),
    }  # fmt: skip
    shapes = {"scores": (heads, rows, keys), "values": (keys, wide)}
    return make_model(nodes, shapes, ["y", *([also] if also else [])], constants)


@pytest.mark.slow
@example((4, 64, 64, 64), ("inf2", "all"), "")
@example((3, 130, 145, 32), ("inf1", "all"), "")
@example((1, 17, 40, 24), ("inf2", "none"), "guarded")
@example((2, 16, 64, 64), ("inf2", "none"), "joined")
@given(
    st.tuples(st.integers(1, 5), st.integers(8, 140), st.integers(8, 140), st.sampled_from([8, 19, 32, 64])),
    st.sampled_from([("inf1", "all"), ("inf2", "all"), ("inf2", "none")]),
    st.sampled_from(["", "guarded", "weights", "joined"]),
)
def test_rows_are_zero_where_they_would_be_nan(sizes: Sizes, precision: tuple[str, str], also: str) -> None:
    """Eight roundings of numbers up to 1: of scores, exponentials, values, and of what the next product reads."""
    model = attention(*sizes, also)
    given_ = data(model)
    once = max(ROUNDING[precision[1]], 2.0**-18)  # exp's on ACT, and sums of some hundred
    for found, wanted in zip(on_core(model, given_, *precision), reference(model, given_), strict=True):
        np.testing.assert_allclose(found, wanted, 0, 8 * once)


@pytest.mark.parametrize(
    ("sizes", "is_quicker"), [((4, 64, 64, 64), True), ((4, 1, 64, 64), False), ((4, 64, 16, 64), False)]
)
def test_of_many_long_rows_the_product_is_divided(sizes: Sizes, is_quicker: bool) -> None:
    """A step's one row, and rows shorter than what comes of them, are divided before."""
    device = load_device("inf2")
    found = compile_model(attention(*sizes), "neuron/inf2").program
    with without("divide_after_products"):
        usual = compile_model(attention(*sizes), "neuron/inf2").program
    assert (time_program(found, device).total_ps < time_program(usual, device).total_ps) == is_quicker
    assert (found == usual) != is_quicker
