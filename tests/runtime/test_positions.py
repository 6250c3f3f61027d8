"""Positions that are computed at run time, for what gathers on the CPU."""

import numpy as np
import pytest
import tvm
import tvm_ffi

import tvm_neuron  # noqa: F401  loads what is tested
from tvm_neuron.errors import PositionError

DATA = tvm.runtime.tensor(np.zeros((3, 5, 7), np.float32))


def checked(positions: np.ndarray, first: int, are_tuples: bool) -> np.ndarray:
    call = tvm_ffi.get_global_func("tvm_neuron.runtime.checked_positions")
    found = call(tvm.runtime.tensor(positions), DATA, "Gather 'look'", first, int(are_tuples))
    assert str(found.dtype) == positions.dtype.name
    return found.numpy()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_negative_positions_count_from_the_end(dtype: type[np.signedinteger]) -> None:
    given = np.array([[-5, 4], [0, -1]], dtype)
    np.testing.assert_array_equal(checked(given, 1, are_tuples=False), [[0, 4], [0, 4]])
    np.testing.assert_array_equal(checked(given % 5, 2, are_tuples=False), given % 5)
    np.testing.assert_array_equal(checked(np.array([[-1, -7], [4, 6]], dtype), 1, are_tuples=True), [[4, 0], [4, 6]])
    assert checked(np.zeros((0, 2), dtype), 1, are_tuples=True).shape == (0, 2)


@pytest.mark.parametrize("index", [5, -6, 2**62, -(2**63)])
def test_a_position_outside_is_refused(index: int) -> None:
    wanted = f"Gather 'look': index {index} lies outside of the 5 elements .* give indices from -5 to 4"
    with pytest.raises(PositionError, match=wanted):
        checked(np.array([0, index, 1]), 1, are_tuples=False)
    with pytest.raises(PositionError, match=wanted):
        checked(np.array([[0, 0], [index, 6]]), 1, are_tuples=True)
