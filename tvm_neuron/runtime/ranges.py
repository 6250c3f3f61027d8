"""Numbers computed at run time by which kernels of the CPU parts address memory: refused where they are out of range.

Positions of gathers and scatters are checked in positions.cc.
"""

import numpy as np
import tvm
import tvm_ffi

from tvm_neuron.errors import PositionError
from tvm_neuron.runtime.tensors import as_numpy


def checked_range(given: tvm.runtime.Tensor, limits: tvm_ffi.Shape, what: str, noun: str) -> tvm.runtime.Tensor:
    """A copy of whole numbers from the first limit up to, without, the second; the third, if any, is allowed besides.

    Raises PositionError, which names the operator `what` and calls the number a `noun`.
    """
    values, (low, end, *ignored) = as_numpy(given), limits
    outside = values[((values < low) | (values >= end)) & ~np.isin(values, ignored)]
    if outside.size:
        besides = f" or {ignored[0]}" if ignored else ""
        raise PositionError(f"{what}: {noun} {outside[0]} is out of range: it must be from {low} to {end - 1}{besides}")
    return tvm.runtime.tensor(values)


def checked_regions(given: tvm.runtime.Tensor, count: tvm_ffi.Shape, what: str) -> tvm.runtime.Tensor:
    """A copy of rows of which each has the number of one of `count` images and finite coordinates.

    Raises PositionError, which names the operator `what`.
    """
    values, (images,) = as_numpy(given), count
    numbers = values[:, 0]
    if (outside := numbers[~((numbers >= 0) & (numbers < images))]).size:
        raise PositionError(f"{what}: batch index {outside[0]:.0f} is out of range: it must be from 0 to {images - 1}")
    if not np.isfinite(values).all():
        row = np.argwhere(~np.isfinite(values))[0, 0]
        raise PositionError(f"{what}: region {row} is {values[row, 1:].tolist()}: its coordinates must be finite")
    return tvm.runtime.tensor(values)


def checked_steps(given: tvm.runtime.Tensor, what: str) -> tvm.runtime.Tensor:
    """A copy of whole numbers of which none is 0, by which kernels divide.

    Raises PositionError, which names the operator `what`.
    """
    values = as_numpy(given)
    if not values.all():
        raise PositionError(f"{what}: step 0 goes nowhere: it must be less or more than 0")
    return tvm.runtime.tensor(values)


def checked_divisors(given: tvm.runtime.Tensor, dividends: tvm.runtime.Tensor, what: str) -> tvm.runtime.Tensor:
    """A copy of whole numbers of which none is 0, nor -1 where the dividends hold the lowest number of their dtype.

    A processor ends the process that divides so. Raises PositionError, which names the operator `what`.
    """
    values, numbers = as_numpy(given), as_numpy(dividends)
    if not values.all():
        raise PositionError(f"{what}: a divisor is 0, which whole numbers can't be divided by")
    low = np.iinfo(numbers.dtype).min
    if low and (values == -1).any() and (numbers == low).any():
        raise PositionError(f"{what}: a divisor is -1 beside the dividend {low}, whose negative its dtype lacks")
    return tvm.runtime.tensor(values)
