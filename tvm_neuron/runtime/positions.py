"""Positions that are computed at run time, for what gathers on the CPU: counted from the start, or refused."""

import numpy as np
import tvm

from tvm_neuron.errors import PositionError
from tvm_neuron.runtime.tensors import as_numpy


def checked_positions(
    positions: tvm.runtime.Tensor, data: tvm.runtime.Tensor, operator: str, first: int, are_tuples: int
) -> tvm.runtime.Tensor:
    """The positions along dimension `first` of the data; as tuples along that and the ones after it.

    Raises:
        PositionError: one lies outside; negative ones count from the end.
    """
    given = as_numpy(positions)
    extents = np.array(data.shape[first : first + given.shape[-1]] if are_tuples else data.shape[first], np.int64)
    if (given.view(f"u{given.itemsize}") < extents.astype(np.uint64)).all():  # as none is negative
        return tvm.runtime.tensor(given)
    outside = (given < -extents) | (given >= extents)
    if outside.any():
        index, extent = (values[outside][0] for values in np.broadcast_arrays(given, extents))
        raise PositionError(
            f"{operator}: index {index} lies outside of the {extent} elements that it chooses from: give indices from "
            f"{-extent} to {extent - 1}"
        )
    return tvm.runtime.tensor(np.where(given < 0, given + extents, given).astype(given.dtype, copy=False))
