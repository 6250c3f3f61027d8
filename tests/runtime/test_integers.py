"""64-bit integers at the border of the device: exact or refused."""

import numpy as np
import pytest

from tvm_neuron.errors import RangeError
from tvm_neuron.runtime.integers import narrowed, widened


def test_what_fits_is_carried_exactly() -> None:
    array = np.array([[-(2**31), 0, 2**31 - 1]])
    assert narrowed("input 'i'", array, np.dtype(np.int32)).tolist() == array.tolist()
    assert widened("output 'o'", np.int32([5, -7]), np.dtype(np.int64)).tolist() == [5, -7]


def test_what_does_not_is_refused() -> None:
    with pytest.raises(RangeError, match="input 'i' holds 2147483648; a NeuronCore's integers have 32 bits"):
        narrowed("input 'i'", np.array([1, 2**31]), np.dtype(np.int32))
    with pytest.raises(RangeError, match="output 'o' reaches the end of 32 bits"):
        widened("output 'o'", np.int32([2**31 - 1]), np.dtype(np.int64))
