"""Axes resized by sums of slices: the rows that repeat make the whole matrix, and what runs agrees with onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.frontend.interpolate import MOST_SUMS
from tvm_neuron.frontend.onnx.interpolation import Axis, linear, positions, weights
from tvm_neuron.frontend.repeated_rows import Repeated, repeated_rows


def matrix_of(old: int, new: int, coordinates: str = "half_pixel") -> np.ndarray:
    axis = Axis(old, new, new / old)
    return weights(positions(axis, coordinates), axis, linear, 1, antialias=False, exclude=False)


def whole(parts: list[Repeated], columns: int) -> np.ndarray:
    made = []
    for part in parts:
        for number in range(part.count):
            for row in part.rows:
                made.append(np.zeros(columns))
                begin = row.first + number * part.step
                made[-1][begin : begin + len(row.weights)] = row.weights
    return np.array(made)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    old=st.integers(1, 70),
    new=st.integers(1, 200),
    coordinates=st.sampled_from(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]),
)
def test_rows_that_repeat_make_the_matrix(old: int, new: int, coordinates: str) -> None:
    matrix = matrix_of(old, new, coordinates)
    parts = repeated_rows(matrix, len(matrix))
    assert parts is not None
    # Positions up to 70 are known to 2 ** -17 in float32.
    np.testing.assert_allclose(whole(parts, old), matrix, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("old", "new", "different"), [(16, 64, 6), (64, 16, 1), (14, 21, 6), (1, 9, 1), (33, 100, None), (2, 2000, None)]
)
def test_as_few_rows_as_repeat(old: int, new: int, different: int | None) -> None:
    matrix = matrix_of(old, new)
    if old > new:  # which takes the two elements about each position
        assert matrix.astype(bool).sum(axis=1).max() == 2
    parts = repeated_rows(matrix, MOST_SUMS)
    assert (parts and sum(len(part.rows) for part in parts)) == different


def test_rows_that_nearly_repeat_do_not() -> None:
    """From one to the next they differ by less than float32 knows of such positions, from first to last by a half."""
    assert repeated_rows(matrix_of(2100, 4201, "align_corners"), MOST_SUMS) is None


def test_longer_rows_and_what_is_no_number_are_left_to_products() -> None:
    assert repeated_rows(np.array([[0.25, 0.5, 0.25]]), MOST_SUMS) is None
    assert repeated_rows(np.array([[np.nan, np.nan]]), MOST_SUMS) is None


def resized(x: np.ndarray, sizes: tuple[int, ...], coordinates: str = "half_pixel") -> tuple[np.ndarray, np.ndarray]:
    """What comes out here, and of onnxruntime."""
    attributes = {"mode": "linear", "coordinate_transformation_mode": coordinates}
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], **attributes)
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = make_model([node], {"x": x.shape}, ["y"], {"s": np.int64(sizes)}, dtype=dtype)
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(fp32_cast="none")
    library = relay.build(mod, "neuron/inf2", params=params, options=options)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return executor.get_output(0).numpy(), session.run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("old", "new", "coordinates"),
    [((5, 6), (10, 24), "half_pixel"), ((8, 6), (4, 9), "half_pixel"), ((3, 5), (9, 17), "align_corners"),
     ((1, 4), (6, 12), "asymmetric")],
)  # fmt: skip
def test_sums_agree_with_onnxruntime(old: tuple[int, int], new: tuple[int, int], coordinates: str) -> None:
    x = np.random.default_rng(sum(new)).standard_normal((2, 64, *old)).astype("float32")
    found, expected = resized(x, (2, 64, *new), coordinates)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)  # sums of four of up to 4, in float32


def test_large_float16_do_not_overflow_between_elements() -> None:
    x = np.tile(np.float16([60000, -60000]), (1, 64, 4))
    found, expected = resized(x, (1, 64, 16))
    np.testing.assert_array_equal(found, expected)
