"""How far rounding may move the elements of a tensor, by the dtype and the precision of a build.

A value has samples beside it: what it would be had everything before it been rounded otherwise. Their spread is the
conditioning of the model at that value, element by element, and so the measure of what an exact compiler may differ by.
"""

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

SAMPLES = 48
"""Errors over the deviation of so few samples follow Student's t: more than ten of it in one of 10**12 elements."""
# Rounding to nearest: half a unit of the last place. float32 has more: functions of the engines are some units off.
_UNITS = {"bf16": 2.0**-9, "fp16": 2.0**-12, "fp32": 2.0**-21}
_KEPT_AS = {"all": "bf16", "matmult": "bf16", "all-fp16": "fp16", "matmult-fp16": "fp16", "none": "fp32"}
_LEAST_FLOAT16 = 2.0**-23  # steps below 2**-14, and what is told apart from nought
_GRID, _MOST = 2.0**6, 2.0**16


def is_grid(array: NDArray) -> bool:
    """Whether all elements are small multiples of 2**-6, of which sums and products are exact in float32."""
    scaled = np.asarray(array, np.float64) * _GRID
    return bool((np.abs(scaled) < _MOST * _GRID).all() and (scaled == np.round(scaled)).all())


def amplitude(array: NDArray, mode: str, is_constant: bool) -> NDArray:
    """By how much rounding moves each computed element of a float tensor at most; constants are made in float32."""
    size = np.abs(np.asarray(array, np.float64))
    if array.dtype == np.float64:
        return size * 2.0**-45
    if array.dtype == np.float16:  # less than a step's half is rounded away again, since samples have the dtype
        return size * _UNITS["fp16"] * 3 + _LEAST_FLOAT16
    kept = "fp32" if is_constant else _KEPT_AS[mode]
    return size * _UNITS[kept] + (_LEAST_FLOAT16 if kept == "fp16" else 0)


def amplitude_of_given(array: NDArray, mode: str) -> NDArray:
    """The same of elements that were not computed: there is nothing to round where the narrower dtype has them."""
    kept = _KEPT_AS[mode]
    if array.dtype != np.float32 or kept == "fp32":
        return amplitude(array, mode, False)
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float16 if kept == "fp16" else ml_dtypes.bfloat16)
    return np.where(narrow.astype(np.float64) == array, amplitude(array, mode, True), amplitude(array, mode, False))


def moved(samples: NDArray, exact: NDArray, by: NDArray, rng: np.random.Generator) -> NDArray:
    """The samples, each element moved by `by` at most."""
    noise = rng.uniform(-1, 1, samples.shape) * by
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(exact), samples + noise, samples).astype(exact.dtype)


def spread(samples: NDArray | None, exact: NDArray) -> NDArray:
    """The root of the mean square of the samples' distance, by element."""
    if samples is None:
        return np.zeros(exact.shape)
    with np.errstate(invalid="ignore"):
        apart = np.asarray(samples, np.float64) - np.asarray(exact, np.float64)
    return np.sqrt(np.mean(np.where(samples == exact, 0.0, apart) ** 2, axis=0))
