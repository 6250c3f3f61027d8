"""Images that a model normalises before its first convolution: the same numbers, in little more time than without."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model
from tvm_neuron.codegen.passes.image_rows import image_rows
from tvm_neuron.codegen.passes.pieces import cut_pieces

NODE = helper.make_node
NORMALISED = [NODE("Sub", ["x", "mean"], ["centred"]), NODE("Div", ["centred", "deviation"], ["image"])]
BEFORE = {
    "nothing": [NODE("Identity", ["x"], ["image"])],
    "normalised": NORMALISED,
    "in steps": [NODE("Div", ["x", "two"], ["half"]), NODE("Clip", ["half", "least", "most"], ["image"])],
    "sum of itself": [NODE("Tanh", ["x"], ["t"]), NODE("Add", ["t", "x"], ["image"])],
}
WINDOWS = {"wide": (7, 2, 3), "narrow": (3, 1, 1), "patches": (8, 8, 0), "points": (1, 1, 0)}
"""Side, stride and padding."""


def model_of(before: str, window: str, shape: tuple[int, ...], channels: int = 24) -> onnx.ModelProto:
    """A convolution of `shape` images."""
    side, stride, pads = WINDOWS[window]
    rng, each = np.random.default_rng(side), (1, shape[1], 1, 1)
    weights = {
        "w": (rng.standard_normal((channels, shape[1], side, side)) / side).astype(np.float32),
        "mean": rng.uniform(0, 1, each).astype(np.float32), "deviation": rng.uniform(1, 2, each).astype(np.float32),
        "two": np.float32(2), "least": np.float32(-0.25), "most": np.float32(0.5),
    }  # fmt: skip
    conv = NODE("Conv", ["image", "w"], ["c"], strides=[stride, stride], pads=[pads] * 4)
    return make_model([*BEFORE[before], conv, NODE("Relu", ["c"], ["y"])], {"x": shape}, ["y"], weights)


@settings(max_examples=12, deadline=None)
@given(
    before=st.sampled_from(list(BEFORE)), window=st.sampled_from(list(WINDOWS)), images=st.integers(1, 3),
    channels=st.integers(1, 5), rows=st.integers(8, 40), columns=st.integers(8, 40),
    precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
def test_as_onnxruntime(
    before: str, window: str, images: int, channels: int, rows: int, columns: int, precision: tuple[str, str]
) -> None:
    model = model_of(before, window, (images, channels, rows, columns))
    check(model, random_inputs(model), *precision)


@pytest.mark.parametrize(("dtype", "last"), [(TensorProto.UINT8, False), (TensorProto.FLOAT, True)])
def test_bytes_and_channels_last(dtype: int, last: bool) -> None:
    shape = (1, 32, 40, 3) if last else (1, 3, 32, 40)
    model = model_of("normalised", "wide", (1, 3, 32, 40))
    (given_input,) = model.graph.input
    given_input.CopyFrom(helper.make_tensor_value_info("raw", dtype, shape))
    order = [0, 3, 1, 2] if last else [0, 1, 2, 3]
    model.graph.node.insert(0, NODE("Cast", ["raw"], ["numbers"], to=TensorProto.FLOAT))
    model.graph.node.insert(1, NODE("Transpose", ["numbers"], ["x"], perm=order))
    array = np.random.default_rng(0).integers(0, 256, shape)
    check(model, {"raw": array.astype(helper.tensor_dtype_to_np_dtype(dtype))}, "inf2", "all")


@pytest.mark.parametrize("before", ["normalised", "in steps"])
@pytest.mark.parametrize("window", ["wide", "patches"])
def test_in_little_more_time(before: str, window: str) -> None:
    """Three lanes of 128 computed, and the array took channel by channel: 6 to 18 times as long."""
    plain, computed = (
        tvm_neuron.report(tvm_neuron.compile(model_of(each, window, (1, 3, 192, 192)), target="neuron/inf2"))
        for each in ("nothing", before)
    )
    assert computed.latency_us < 2 * plain.latency_us


def test_which_tensors_lie_by_rows() -> None:
    """What is only moved, as an input that is padded, does not: it is packed from where it is."""
    few, many = (1, 3, 32, 40), (1, 24, 32, 40)
    computed, moved, wide = (
        graph_of(model_of(before, "wide", shape))
        for before, shape in (("normalised", few), ("nothing", few), ("normalised", many))
    )
    for graph in (computed, moved, wide):
        cut_pieces(graph)
    found = image_rows(computed)
    assert "x" in {tensor.name for tensor in found}
    assert set(found.values()) == {2}
    assert not image_rows(moved)
    assert not image_rows(wide)
