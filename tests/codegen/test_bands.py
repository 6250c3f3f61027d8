"""Convolutions of few channels as products with bands of their weights, beside onnxruntime."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import Arrays, make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.passes.bands import band_of
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.sim import time_program


@dataclass(frozen=True)
class Filter:
    """A convolution of images of `rows` x `columns` between two that keep each element apart."""

    channels: int
    outputs: int
    groups: int
    rows: int
    columns: int
    window: tuple[int, int]
    stride: int = 1
    dilation: int = 1
    is_padded: bool = True
    images: int = 1

    def model(self) -> onnx.ModelProto:
        """From "x" to "y"."""
        rng = np.random.default_rng(self.channels)
        shape = self.outputs, self.channels // self.groups, *self.window
        weights = rng.standard_normal(shape).astype(np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)
        around = [self.dilation * (extent // 2) * self.is_padded for extent in self.window]
        conv = helper.make_node(
            "Conv", ["r", "w", "b"], ["c"], pads=around * 2, group=self.groups, strides=[self.stride] * 2,
            dilations=[self.dilation] * 2,
        )  # fmt: skip
        nodes = [helper.make_node("Relu", ["x"], ["r"]), conv, helper.make_node("Relu", ["c"], ["y"])]
        bias = rng.standard_normal(self.outputs).astype(np.float32)
        shape = self.images, self.channels, self.rows, self.columns
        return make_model(nodes, {"x": shape}, ["y"], {"w": weights, "b": bias})

    def inputs(self) -> Arrays:
        """Random ones."""
        shape = self.images, self.channels, self.rows, self.columns
        return {"x": np.random.default_rng(self.rows).standard_normal(shape).astype(np.float32)}

    def has_band(self) -> bool:
        """Whether one can take the window's place."""
        return any(band_of(block) is not None for block in graph_of(self.model(), "inf2").blocks)


BLUR = Filter(3, 3, 3, 96, 130, (11, 11))
LONG = Filter(4, 4, 4, 64, 64, (65, 1))
ONE = Filter(1, 1, 1, 150, 96, (3, 3))
DENSE = Filter(4, 3, 1, 96, 96, (9, 1), dilation=2, is_padded=False)
STRIDED = Filter(16, 16, 16, 64, 64, (7, 7), stride=2)
LINE = Filter(3, 3, 3, 100, 40, (1, 9), images=2)
COLOURS = Filter(3, 3, 1, 150, 130, (1, 1))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    channels=st.sampled_from([(1, 1, 1), (3, 3, 3), (2, 4, 1), (4, 6, 2), (8, 8, 8), (16, 16, 16), (3, 1, 1)]),
    size=st.tuples(st.integers(6, 140), st.integers(6, 60)),
    window=st.sampled_from([(3, 3), (5, 5), (1, 7), (7, 1), (11, 3), (1, 1)]),
    steps=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    is_padded=st.booleans(),
    images=st.integers(1, 2),
    chosen=st.sampled_from(PRECISIONS),
)
def test_random_ones(
    channels: tuple[int, int, int], size: tuple[int, int], window: tuple[int, int], steps: tuple[int, int],
    is_padded: bool, images: int, chosen: tuple[str, str],
) -> None:  # fmt: skip
    reach = [steps[1] * (extent - 1) + 1 for extent in window]
    assume(is_padded or all(extent >= length for extent, length in zip(size, reach, strict=True)))
    case = Filter(*channels, *size, window, *steps, is_padded, images)
    check(case.model(), case.inputs(), *chosen)


@pytest.mark.parametrize("chosen", PRECISIONS, ids=str)
@pytest.mark.parametrize("case", [BLUR, LONG, ONE, DENSE, STRIDED, LINE, COLOURS], ids=str)
def test_as_onnxruntime_and_sooner(case: Filter, chosen: tuple[str, str]) -> None:
    check(case.model(), case.inputs(), *chosen)
    device = load_device("neuron/inf2")
    with without("bands"):
        windows = compile_model(case.model(), "neuron/inf2").program
    found = compile_model(case.model(), "neuron/inf2").program
    assert time_program(found, device).total_ps < time_program(windows, device).total_ps


@pytest.mark.parametrize("case", [BLUR, LONG, ONE, DENSE, STRIDED, LINE, COLOURS], ids=str)
def test_has_a_band(case: Filter) -> None:
    assert case.has_band()


@pytest.mark.parametrize(
    "case",
    [
        Filter(32, 32, 32, 56, 56, (7, 7)),  # channels fill a quarter of the partitions
        Filter(3, 32, 1, 64, 64, (3, 3)),  # of the output, that is
        Filter(16, 16, 1, 200, 200, (3, 3)),  # matrices of many megabytes
        Filter(1, 1, 1, 1, 4096, (1, 31)),  # one of 4096 x 4096
    ],
    ids=str,
)
def test_has_none(case: Filter) -> None:
    assert not case.has_band()


def test_heads_of_attention_that_are_mixed() -> None:
    """As talking heads mix scores: by a product over what lies on no dimension of a row."""
    rng = np.random.default_rng(4)
    mix = rng.standard_normal((4, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=-1),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["t", "w"], ["m"]),
        helper.make_node("Transpose", ["m"], ["y"], perm=[0, 3, 1, 2]),
    ]
    model = make_model(nodes, {"x": (1, 4, 196, 196)}, ["y"], {"w": mix})
    check(model, {"x": rng.standard_normal((1, 4, 196, 196)).astype(np.float32)}, "inf2", "all")
    with without("bands"):
        windows = compile_model(model, "neuron/inf2").program
    found, device = compile_model(model, "neuron/inf2").program, load_device("neuron/inf2")
    assert time_program(found, device).total_ps < time_program(windows, device).total_ps


def test_a_resize_that_is_split_into_dimensions() -> None:
    """Its weights are a constant of few channels, and what it writes has more dimensions before layouts."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("Resize", ["r", "", "scales"], ["z"], mode="linear", antialias=1),
        helper.make_node("Add", ["z", "b"], ["y"]),
    ]
    weights = {"shape": np.int64([1, -1, 1]), "scales": np.float32([1, 1, 2])}
    model = make_model(nodes, {"x": (2, 5, 1, 3), "b": (1, 30, 2)}, ["y"], weights)
    check(model, random_inputs(model), "inf1", "all")


@pytest.mark.parametrize("case", [Filter(2, 2, 2, 8, 8, (3, 3)), Filter(3, 16, 1, 64, 64, (3, 3), stride=2)], ids=str)
def test_windows_stay_where_bands_are_slower(case: Filter) -> None:
    with without("bands"):
        windows = compile_model(case.model(), "neuron/inf2").program
    assert compile_model(case.model(), "neuron/inf2").program == windows
