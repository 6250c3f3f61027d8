"""What the ALU operations and activation functions compute, in float32."""

from collections.abc import Callable
from math import erf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _truth(test: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: test(a, b).astype(np.float32)


TESTS: dict[str, Callable[..., Array]] = {
    "is_equal": np.equal,
    "not_equal": np.not_equal,
    "is_gt": np.greater,
    "is_ge": np.greater_equal,
    "is_lt": np.less,
    "is_le": np.less_equal,
}
COMPARISONS = tuple(TESTS)
ALU: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "mod": np.mod,
    "abs_max": lambda a, b: np.maximum(np.abs(a), np.abs(b)),
    **{name: _truth(test) for name, test in TESTS.items()},
    "logical_and": _truth(np.logical_and),
    "logical_or": _truth(np.logical_or),
    "logical_xor": _truth(np.logical_xor),
    "fmod": np.fmod,  # of the sign of the dividend, where that of mod is the divisor's
}
ALU_NAMES = tuple(ALU)
WHOLE = ("add", "subtract", "multiply")  # which an engine may have for 32-bit whole numbers as they are

# Operations on whole numbers as they are, named as in the public NKI instruction set.
BITWISE: dict[str, Callable[[Array, Array], Array]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "logical_shift_left": np.left_shift,
    "arith_shift_right": np.right_shift,
    "logical_shift_right": lambda a, b: np.right_shift(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
}
BITWISE_NAMES = tuple(BITWISE)

# Operations that can accumulate along free axes, with NumPy's reduction of each.
REDUCE: dict[str, Callable[..., Array]] = {"add": np.sum, "max": np.max, "min": np.min, "multiply": np.prod}
REDUCE_NAMES = tuple(REDUCE)
NEGATED = {f"negated_{name}": name for name in REDUCE_NAMES}
_SMALL_WINDOW = 32  # elements up to which the largest is found place by place, in all windows at once


def reduced(op: str, source: Array, axes: int) -> Array:
    """`op` over the last `axes` axes, in float32; the bits don't depend on how `source` lies in memory."""
    kept, window = source.shape[:-axes], source.shape[-axes:]
    if op in ("max", "min") and prod(window) <= _SMALL_WINDOW:  # rounds nothing, so that the order doesn't matter
        found, *others = [source[(..., *place)] for place in np.ndindex(window)]
        for other in others:
            found = ALU[op](found, other)
        return found
    # In one row of memory: NumPy's order of adding depends on the layout.
    return REDUCE[op](np.ascontiguousarray(source, np.float32).reshape(*kept, -1), axis=-1)


def scaled(x: Array, scale: Array, bias: Array) -> Array:
    """x * scale + bias; a scale of one takes no pass over the values."""
    product = x if scale.ndim == 0 and scale == 1 else x * scale
    found: Array = product + bias
    return found


def with_scalars(source: Array, scalars: tuple[Array, Array], ops: tuple[str, str], reverse: int) -> Array:
    """(source op0 scalar0) op1 scalar1, the second unless it is "bypass"; bit i of `reverse` swaps operands of op i."""
    for number, (op, scalar) in enumerate(zip(ops, scalars, strict=True)):
        if op != "bypass":
            source = ALU[op](scalar, source) if reverse >> number & 1 else ALU[op](source, scalar)
    return source


def _sigmoid(x: Array) -> Array:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


_ERF_STEPS = 1024  # segments of the table for each unit of the argument
_ERF_END = 4.0  # beyond, 1 - erf is less than half an ulp
_ERF_TABLE = np.array([erf(step / _ERF_STEPS) for step in range(int(_ERF_END * _ERF_STEPS) + 2)])
_ERF_BELOW, _ERF_RISE = _ERF_TABLE[:-1].astype(np.float32), np.diff(_ERF_TABLE).astype(np.float32)
_ERF_ELEMS = 1 << 14  # at a time, so that what is between stays in the host's cache


def _erf(x: Array) -> Array:
    """From a table, linear between its entries (error below 3e-7), as the engine's own tables are."""
    found = np.empty(x.shape, np.float32)
    flat, source = found.reshape(-1), np.ascontiguousarray(x).reshape(-1)
    for start in range(0, flat.size, _ERF_ELEMS):
        part = source[start : start + _ERF_ELEMS]
        place = np.abs(part)
        np.minimum(place, np.float32(_ERF_END), out=place)
        place *= np.float32(_ERF_STEPS)
        low = np.fmax(place, np.float32(0)).astype(np.int32)  # of NaN too, which has no place
        place -= low
        place *= _ERF_RISE.take(low)
        place += _ERF_BELOW.take(low)
        np.copysign(place, part, out=flat[start : start + _ERF_ELEMS])
    return found


def _gelu(x: Array) -> Array:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    found: Array = x * np.float32(0.5) * (np.float32(1) + _erf(x * np.float32(np.sqrt(0.5))))
    return found


def _gelu_tanh(x: Array) -> Array:
    """Its approximation x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    inside = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * (x * x * x))
    found: Array = x * np.float32(0.5) * (np.float32(1) + np.tanh(inside))
    return found


_GELU_SIGMOID = np.float32(1.702)


def _silu_dx(x: Array) -> Array:
    """The derivative of x * sigmoid(x)."""
    found: Array = _sigmoid(x) * (np.float32(1) + x * _sigmoid(-x))
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
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": lambda x: np.logaddexp(x, np.float32(0)),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, np.float32(0))),
    "gelu_sigmoid": lambda x: x * _sigmoid(_GELU_SIGMOID * x),
    "silu_dx": _silu_dx,
    "gelu_sigmoid_dx": lambda x: _silu_dx(_GELU_SIGMOID * x),
}
ACTIVATION_NAMES = tuple(ACTIVATION)
