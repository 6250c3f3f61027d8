"""Inputs and outputs of which every second element is taken cross the border as a whole: the same, in far less time."""

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model

NODE = helper.make_node
KINDS = ("upsampled", "interleaved", "every other pixel", "blocks to channels", "side by side", "patches")


def model_of(kind: str, channels: int, rows: int, columns: int) -> onnx.ModelProto:
    """Images whose pixels are taken apart, or put between each other; rows and columns are halves of an image's."""
    rng, half = np.random.default_rng(channels), (1, channels, rows, columns)
    whole = (1, channels, 2 * rows, 2 * columns)
    weights = {
        "w": (rng.standard_normal((channels, 3, 4, 4)) / 4).astype(np.float32), "twice": np.float32([1, 1, 2, 2]),
        "axes": np.array([2, 3]), "steps": np.array([2, 2]), "ends": np.array([2 * rows, 2 * columns]),
        "apart": np.array([1, channels, rows, 2, columns, 2]), "flat": np.array([1, rows * columns, 4 * channels]),
    }  # fmt: skip
    weights |= {f"from{p}{q}": np.array([p, q]) for p in (0, 1) for q in (0, 1)}
    every = [f"{p}{q}" for p in (0, 1) for q in (0, 1)]
    cut = [NODE("Slice", ["x", f"from{at}", "ends", "axes", "steps"], [f"s{at}"]) for at in every]
    shape, nodes = {
        "upsampled": (half, [NODE("Resize", ["x", "", "twice"], ["y"], mode="linear")]),
        "interleaved": (
            half, [NODE("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1] * 4, kernel_shape=[4, 4])]
        ),
        "every other pixel": (whole, [*cut, NODE("Concat", [f"s{at}" for at in every], ["y"], axis=1)]),
        "blocks to channels": (whole, [NODE("SpaceToDepth", ["x"], ["y"], blocksize=2)]),
        "side by side": (whole, [*cut[:2], NODE("Concat", ["s00", "s01"], ["y"], axis=3)]),
        "patches": (
            whole,
            [
                NODE("Reshape", ["x", "apart"], ["a"]), NODE("Transpose", ["a"], ["t"], perm=[0, 2, 4, 3, 5, 1]),
                NODE("Reshape", ["t", "flat"], ["y"]),
            ],
        ),
    }[kind]  # fmt: skip
    return make_model(nodes, {"x": shape}, ["y"], weights)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(KINDS), channels=st.integers(1, 40), rows=st.integers(1, 40), columns=st.integers(1, 20),
    precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
@example(kind="every other pixel", channels=3, rows=40, columns=20, precision=("inf2", "all"))
@example(kind="blocks to channels", channels=3, rows=40, columns=20, precision=("inf2", "none"))
@example(kind="upsampled", channels=8, rows=20, columns=20, precision=("inf1", "all"))
@example(kind="interleaved", channels=8, rows=20, columns=20, precision=("inf2", "none"))
def test_as_onnxruntime(kind: str, channels: int, rows: int, columns: int, precision: tuple[str, str]) -> None:
    model = model_of(kind, channels, rows, columns)
    check(model, random_inputs(model), *precision)


def test_means_of_windows_side_by_side() -> None:
    """What divides them is known only once the places of windows are; it is asked what they take before."""
    sizes = (56, 28, 14)
    nodes = [NODE("Relu", ["x"], ["r"])]
    for n in sizes:
        nodes += [NODE("AveragePool", ["r"], [f"a{n}"], kernel_shape=[n, n], strides=[n, n]),
                  NODE("Flatten", [f"a{n}"], [f"f{n}"])]  # fmt: skip
    nodes.append(NODE("Concat", [f"f{n}" for n in sizes], ["y"], axis=1))
    model = make_model(nodes, {"x": (1, 64, 56, 56)}, ["y"], {})
    check(model, random_inputs(model), "inf2", "all")


@pytest.mark.parametrize(
    ("kind", "channels"), [("upsampled", 64), ("interleaved", 64), ("every other pixel", 3), ("blocks to channels", 3)]
)
def test_no_transfer_takes_element_by_element(kind: str, channels: int) -> None:
    """They took 85 to 410 times as long as DRAM needs."""
    report = tvm_neuron.report(tvm_neuron.compile(model_of(kind, channels, 128, 128), target="neuron/inf2"))
    assert not report.placed("cpu")
    assert report.latency_us < 15 * report.roofline_us
