"""Resize takes the elements that onnxruntime takes, with positions in float32; torch's models align torch's corners."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.frontend.onnx.interpolation import Axis, nearest, positions


def resized(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(fp32_cast="none")
    library = relay.build(mod, "neuron/inf2", params=params, options=options)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    return executor.get_output(0).numpy()


def resize(scale: float, extent: int, **attributes: str) -> onnx.ModelProto:
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    return make_model([node], {"x": [1, 3, extent]}, ["y"], {"scales": np.float32([1, 1, scale])})


@given(
    scale=st.integers(1, 40).map(lambda tenths: tenths / 10) | st.floats(0.0625, 4, width=32),
    extent=st.integers(1, 40),
    coordinates=st.sampled_from(
        ["asymmetric", "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "half_pixel_symmetric"]
    ),
    rounding=st.sampled_from(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]),
)
def test_every_element_comes_from_where_onnxruntime_takes_it(
    scale: float, extent: int, coordinates: str, rounding: str
) -> None:
    model = resize(scale, extent, mode="nearest", coordinate_transformation_mode=coordinates, nearest_mode=rounding)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    x = np.broadcast_to(np.arange(extent, dtype="float32"), (1, 3, extent))
    expected = session.run(None, {"x": x})[0][0, 0]
    assume(0 < expected.size != extent)  # of as many elements it makes a copy, whatever their positions are
    axis = Axis(extent, expected.size, float(np.float32(scale)))
    np.testing.assert_array_equal(nearest(positions(axis, coordinates), extent, rounding), expected)


@pytest.mark.parametrize(("scale", "extent"), [(0.6, 11), (0.7, 30), (0.3, 40), (1.4, 15)])
def test_elements_before_positions_that_are_whole_but_for_rounding(scale: float, extent: int) -> None:
    x = np.random.default_rng(extent).standard_normal((1, 3, extent)).astype("float32")
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    model = resize(scale, extent, **attributes)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(resized(model, x), expected)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_corners_of_torch_are_those_of_what_comes_out(mode: str) -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 11)).astype("float32")
    model = resize(0.6, 11, mode=mode, coordinate_transformation_mode="align_corners")
    model.producer_name = "pytorch"
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(resized(model, x), expected, rtol=1e-5, atol=1e-5)  # positions have float32's digits
