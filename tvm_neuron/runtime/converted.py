"""as_array, converted: an input in the dtype that the model takes, as TVM has it; what changes is told."""

import warnings
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray

from tvm_neuron.errors import InputError, InputWarning
from tvm_neuron.neff import TensorInfo
from tvm_neuron.runtime.tensors import as_numpy

_NUMBERS = "biuf"
"""NumPy's kinds: truth values, whole numbers with a sign and without, floats."""


def as_array(info: TensorInfo, value: Any) -> NDArray[Any]:
    """A tensor, an array, a number or nested lists as an array; floats of the latter two have no width of their own.

    Raises:
        InputError: it is none of them.
    """
    if isinstance(value, tvm.runtime.Tensor):
        return as_numpy(value)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise InputError(f"input '{info.name}' is no array: {error}") from error
    if array.dtype.kind != "f" or "float" not in info.dtype:
        return array
    with np.errstate(over="ignore"):
        return array.astype(info.dtype)


def converted(info: TensorInfo, array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The array in the dtype of an input, if both hold numbers; a warning says that some of them changed by it."""
    if array.dtype.name == info.dtype or array.dtype.kind not in _NUMBERS:
        return array
    try:
        dtype = np.dtype(info.dtype)
    except TypeError:  # bfloat16 and others that NumPy lacks
        return array
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        is_same = (result.astype(array.dtype) == array) | (array != array)  # NaN stays NaN, if only among floats
    changed = ~is_same if dtype.kind == "f" else ~is_same | (array != array)
    if changed.any():
        old, new = array[changed][0], result[changed][0]
        warnings.warn(
            f"input '{info.name}' is {array.dtype.name}; the model takes {info.dtype}: {np.count_nonzero(changed)} of "
            f"{array.size} values change, {old} to {new}. Convert it before, to say that this is meant",
            InputWarning,
            stacklevel=5,
        )
    return result
