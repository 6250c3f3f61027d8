"""Inputs of another dtype: converted as TVM's own executors do it, with a word where values change."""

import warnings
from typing import Any

import numpy as np
import pytest

from tvm_neuron.errors import InputWarning
from tvm_neuron.neff import TensorInfo
from tvm_neuron.runtime.converted import as_array, converted


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([0.5, -3, np.inf, np.nan]), "float32"),
        (np.int32([-7, 2**31 - 1]), "int64"),
        (np.int64([-7, 2**31 - 1]), "int32"),
        (np.array([True, False]), "float32"),
        (np.float32([0, 255]), "uint8"),
        (np.float16([1.5, -2]), "float64"),
    ],
)
def test_what_the_dtype_holds_exactly_is_converted_silently(given: np.ndarray, dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = converted(TensorInfo("x", given.shape, dtype), given)
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(found.astype(given.dtype), given)


@pytest.mark.parametrize(
    ("given", "dtype", "said"),
    [
        (np.array([0.5, 0.1, 0.2]), "float32", "is float64; the model takes float32: 2 of 3 values change, 0.1 to 0.1"),
        (np.array([1, 2**40]), "int32", "1 of 2 values change, 1099511627776 to 0"),
        (np.float32([1.5, 2]), "int64", "1 of 2 values change, 1.5 to 1"),
        (np.int64([2**24 + 1]), "float32", "1 of 1 values change, 16777217 to 16777216"),
        (np.array([-1]), "uint8", "-1 to 255"),
    ],
)
def test_what_changes_is_told(given: np.ndarray, dtype: str, said: str) -> None:
    with pytest.warns(InputWarning, match=said):
        found = converted(TensorInfo("x", given.shape, dtype), given)
    np.testing.assert_array_equal(found, given.astype(dtype))


def test_what_is_no_number_stays_as_it_is() -> None:
    for given in (np.array(["a"]), np.array([1j])):
        assert converted(TensorInfo("x", (1,), "float32"), given) is given


@pytest.mark.parametrize(("given", "dtype"), [([0.1, 1e300], "float32"), ([3, 4], "float16"), (0.1, "bfloat16")])
def test_numbers_and_lists_of_them_have_no_dtype_of_their_own(given: Any, dtype: str) -> None:
    info = TensorInfo("x", np.shape(given), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert converted(info, as_array(info, given)).dtype.name == dtype


def test_a_list_that_the_dtype_does_not_hold() -> None:
    info = TensorInfo("x", (2,), "int32")
    with pytest.warns(InputWarning, match="1 of 2 values change, 1.5 to 1"):
        converted(info, as_array(info, [1.5, 2]))
