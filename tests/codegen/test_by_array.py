"""Channels that go from any partitions to others: by the PE array, without a way through device memory."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check, on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Matmul
from tvm_neuron.sim import time_program


def parts(channels: int, first: int, count: int, columns: int = 9, kind: str = "Conv") -> onnx.ModelProto:
    """`count` channels of an image, from `first` on, times as many in front; `kind`: what makes the image of "x"."""
    rng = np.random.default_rng(channels)
    node, weights = helper.make_node, {"w": rng.standard_normal((channels, 16, 1, 1)).astype(np.float32) / 4}
    weights |= {"from": np.int64([first]), "to": np.int64([first + count])}
    weights |= {"zero": np.int64([0]), "some": np.int64([count]), "axis": np.int64([1])}
    made = [node("Conv", ["x", "w"], ["image"])] if kind == "Conv" else [node("Neg", ["x"], ["image"])]
    nodes = [
        *made, node("MaxPool", ["image"], ["most"], kernel_shape=[1, 3]), node("Sigmoid", ["most"], ["gate"]),
        node("Slice", ["gate", "from", "to", "axis"], ["part"]),
        node("Slice", ["most", "zero", "some", "axis"], ["front"]),
        node("Mul", ["part", "front"], ["product"]), node("MaxPool", ["product"], ["y"], kernel_shape=[3, 1]),
    ]  # fmt: skip
    return make_model(nodes, {"x": (1, 16 if kind == "Conv" else channels, 5, columns)}, ["y"], weights)


def image(channels: int, columns: int = 9) -> dict[str, np.ndarray]:
    """A random one."""
    shape = (1, channels, 5, columns)
    return {"x": np.random.default_rng(columns).standard_normal(shape).astype(np.float32)}


@pytest.mark.slow
@settings(max_examples=5)
@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 100), st.integers(3, 40), st.sampled_from(PRECISIONS))
def test_parts_of_channels(first: int, count: int, behind: int, columns: int, precision: tuple[str, str]) -> None:
    model = parts(first + count + behind, first, count, columns)
    check(model, image(16, columns), *precision)


def test_takes_less_time() -> None:
    model, device = parts(60, 20, 30), load_device("inf2")
    usual = compile_model(model, "neuron/inf2").program
    with without("choose_routes"):
        without_array = compile_model(model, "neuron/inf2").program
    assert time_program(usual, device).total_ps < time_program(without_array, device).total_ps
    assert any(isinstance(each, Matmul) and each.stationary.shape == (50, 30) for _, each in usual.instructions())
    check(model, image(16), "inf2", "all")


def test_what_may_be_infinite_takes_the_other_way() -> None:
    model, inputs = parts(60, 20, 30, kind="Neg"), image(60)
    inputs["x"][0, 55] = np.inf  # which no other channel should see
    (found,) = on_core(model, inputs, "inf2", "none")
    x = -inputs["x"].astype(np.float64)
    most = np.maximum(np.maximum(x[..., :-2], x[..., 1:-1]), x[..., 2:])
    product = most[:, :30] / (1 + np.exp(-most[:, 20:50]))
    wanted = np.maximum(np.maximum(product[:, :, :-2], product[:, :, 1:-1]), product[:, :, 2:])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
