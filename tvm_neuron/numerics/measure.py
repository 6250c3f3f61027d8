"""How far two arrays are apart, and whether roundings explain it."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.dtypes import DTYPES

ELSEWHERE = 2.0
"""We round as often as the emulation, but in part at other places: other draws of the same size."""
LEAST = 2e-5
"""What tables of functions and sums in another order differ by in float32; see `tests/models` and the catalogue."""


@dataclass(frozen=True, slots=True)
class Apart:
    """`error` is the relative L2 over what is finite in both, of whole numbers the share that differs.

    `stray` counts elements that are not finite in one of both, and not the same; `nans` those that are NaN here alone.
    """

    error: float
    largest: float
    stray: int = 0
    nans: int = 0


def apart(found: NDArray[Any], exact: NDArray[Any]) -> Apart:
    """How far `found` is from `exact`, which is of the same shape."""
    if exact.dtype.kind not in "fV":
        differs = found != exact
        return Apart(float(np.mean(differs)) if exact.size else 0.0, float(np.any(differs)))
    one, other = np.asarray(found, np.float64), np.asarray(exact, np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    same = finite | (one == other) | (np.isnan(one) & np.isnan(other))
    difference, size = one[finite] - other[finite], np.linalg.norm(other[finite])
    largest = float(np.abs(difference).max(initial=0.0))
    error = float(np.linalg.norm(difference) / size) if size else largest
    nans = np.count_nonzero(np.isnan(one) & ~np.isnan(other))
    return Apart(error, largest, int(np.count_nonzero(~same)), int(nans))


def bound(emulated: Apart, coarsest: str) -> float:
    """The error that roundings explain: twice the emulation's, and what one rounding to the coarsest dtype costs."""
    usual = float(ml_dtypes.finfo(DTYPES[coarsest]).eps) / 8  # of a rounding, which is half of eps at most
    return ELSEWHERE * emulated.error + max(usual, LEAST)


def is_explained(found: Apart, emulated: Apart, coarsest: str) -> bool:
    """Whether the roundings explain an error, and what is not finite."""
    return found.error <= bound(emulated, coarsest) and (not found.stray or emulated.stray > 0)


def percent(value: float) -> str:
    """An error with two digits that mean something."""
    return f"{100 * value:.2g} %"
