"""What the ALU operations and activation functions compute, in float32."""

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _truth(test: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: test(a, b).astype(np.float32)


ALU: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "mod": np.mod,
    "is_equal": _truth(np.equal),
    "not_equal": _truth(np.not_equal),
    "is_gt": _truth(np.greater),
    "is_ge": _truth(np.greater_equal),
    "is_lt": _truth(np.less),
    "is_le": _truth(np.less_equal),
}
ALU_NAMES = tuple(ALU)

# Operations that can accumulate along free axes, with NumPy's reduction of each.
REDUCE: dict[str, Callable[..., Array]] = {"add": np.sum, "max": np.max, "min": np.min, "multiply": np.prod}
REDUCE_NAMES = tuple(REDUCE)


def _sigmoid(x: Array) -> Array:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


_ERF_STEPS = 1024  # segments of the table for each unit of the argument
_ERF_END = 4.0  # beyond, 1 - erf is less than half an ulp
_ERF_TABLE = np.array([erf(step / _ERF_STEPS) for step in range(int(_ERF_END * _ERF_STEPS) + 2)])


def _erf(x: Array) -> Array:
    """From a table, linear between its entries (error below 2e-7), as the engine's own tables are."""
    place = np.minimum(np.abs(x), np.float32(_ERF_END)) * np.float32(_ERF_STEPS)
    low = np.nan_to_num(place).astype(np.int32)
    below, above = _ERF_TABLE[low], _ERF_TABLE[low + 1]
    found: Array = np.copysign(below + (place - low) * (above - below), x).astype(np.float32)
    return found


ACTIVATION: dict[str, Callable[[Array], Array]] = {
    "copy": lambda x: x,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "reciprocal": lambda x: np.float32(1) / x,
    "square": np.square,
    "abs": np.abs,
    "sign": np.sign,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "sin": np.sin,
    "arctan": np.arctan,
    "erf": _erf,
}
ACTIVATION_NAMES = tuple(ACTIVATION)
