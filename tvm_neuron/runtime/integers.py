"""64-bit integers at the border of the device, whose own are of 32 bits: carried exactly or refused."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import RangeError


def narrowed(what: str, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in the dtype of device memory.

    Raises:
        RangeError: a 64-bit integer does not fit into 32 bits.
    """
    if array.dtype == np.int64 and dtype == np.int32 and array.size:
        limits = np.iinfo(np.int32)
        for value in (array.min(), array.max()):
            if not limits.min <= value <= limits.max:
                raise RangeError(
                    f"{what} holds {value}; a NeuronCore's integers have 32 bits, from {limits.min} to {limits.max}: "
                    "keep its values within that, or the operators that read it on the CPU"
                )
    return array.astype(dtype, copy=False)


def widened(what: str, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The result in the model's dtype.

    Raises:
        RangeError: a 32-bit result stands at the limit at which conversions saturate, and the model's has 64 bits.
    """
    if array.dtype == np.int32 and dtype == np.int64 and array.size:
        limits = np.iinfo(np.int32)
        if array.min() == limits.min or array.max() >= 2**31 - 128:  # the last float32 below 2^31
            raise RangeError(
                f"{what} reaches the end of 32 bits, where conversions saturate: the model's int64 value may be "
                "larger; keep the operator that makes it on the CPU"
            )
    return array.astype(dtype, copy=False)
