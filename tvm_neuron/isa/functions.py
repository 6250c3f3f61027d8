"""What the ALU operations and activation functions compute, in float32."""

from collections.abc import Callable
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
}
ACTIVATION_NAMES = tuple(ACTIVATION)
