"""counted: positions known at compile time, negative ones counted from the end."""

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ModelError

Positions = NDArray[np.int64]


def counted(given: NDArray[np.integer], limits: NDArray[np.int64]) -> Positions:
    """The positions from the start of dimensions of `limits` elements, which broadcast against them.

    Raises:
        ModelError: an index lies outside of its dimension.
    """
    outside = (given < -limits) | (given >= limits)
    if outside.any():
        limit = np.broadcast_to(limits, given.shape)[outside][0]
        raise ModelError(f"index {given[outside][0]} is outside of the dimension it chooses from ({limit} elements)")
    return np.where(given < 0, given + limits, given).astype(np.int64)
