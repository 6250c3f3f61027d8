"""converted: an input in the dtype that the model takes, as TVM's own executors have it; what changes is told."""

import warnings

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import InputWarning
from tvm_neuron.neff import TensorInfo

_NUMBERS = "biuf"
"""NumPy's kinds: truth values, whole numbers with a sign and without, floats."""


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
