"""Convolutions by weights that the model computes, in groups: style networks and hypernetworks have them."""

import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model


def model_of(groups: int, channels: int, outputs: int, size: int, kernel: int, is_transposed: bool) -> onnx.ModelProto:
    """`channels` and `outputs` of each group; images and weights are both computed before."""
    ends = (groups * channels, outputs) if is_transposed else (groups * outputs, channels)
    nodes = [helper.make_node("Tanh", ["x"], ["image"]), helper.make_node("Tanh", ["w"], ["weights"])]
    if is_transposed:
        nodes.append(helper.make_node("ConvTranspose", ["image", "weights"], ["y"], group=groups, strides=[2, 2]))
    else:
        pads = [kernel // 2] * 4
        nodes.append(helper.make_node("Conv", ["image", "weights"], ["y"], group=groups, pads=pads))
    return make_model(nodes, {"x": (1, groups * channels, size, size), "w": (*ends, kernel, kernel)}, ["y"], {})


@settings(max_examples=12, deadline=None)
@given(
    groups=st.integers(1, 4), channels=st.sampled_from([3, 16, 24, 40]), outputs=st.sampled_from([1, 8, 32]),
    size=st.integers(3, 20), kernel=st.integers(1, 4), is_transposed=st.booleans(),
    precision=st.sampled_from([each for each in PRECISIONS if each[0] == "inf2"]),
)  # fmt: skip
@example(groups=2, channels=16, outputs=16, size=20, kernel=3, is_transposed=False, precision=("inf2", "all"))
@example(groups=2, channels=96, outputs=64, size=6, kernel=3, is_transposed=True, precision=("inf2", "none"))
def test_as_onnxruntime(
    groups: int, channels: int, outputs: int, size: int, kernel: int, is_transposed: bool, precision: tuple[str, str]
) -> None:
    model = model_of(groups, channels, outputs, size, kernel, is_transposed)
    check(model, random_inputs(model), *precision)


@pytest.mark.parametrize(
    ("channels", "outputs", "size", "is_transposed", "times"), [(16, 16, 64, False, 20), (96, 64, 16, True, 12)]
)
def test_windows_are_not_written_out(channels: int, outputs: int, size: int, is_transposed: bool, times: int) -> None:
    """Each element was moved nine times, or by itself: 125 and 32 times what DRAM needs."""
    model = model_of(2, channels, outputs, size, 3, is_transposed)
    report = tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2"))
    assert not report.placed("cpu")
    assert report.latency_us < times * report.roofline_us
