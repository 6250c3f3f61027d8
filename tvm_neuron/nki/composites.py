"""Functions of nki.language that are several of its calls: variance, softmax, a norm, all, not, some derivatives."""

from math import log, pi, sqrt
from typing import Any

from tvm_neuron.nki import calls
from tvm_neuron.nki.language import mean
from tvm_neuron.nki.tile import tile_of
from tvm_neuron.nki.view import View


def var(x: View, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> View:
    """The variance over free axes: the mean of the squares of what is left of x without its mean."""
    middle = mean(x, axis, dtype="float32", mask=mask, keepdims=True)
    left = tile_of(calls.binary("subtract", x, middle), mask, "float32")
    squares = tile_of(calls.unary("square", left), mask)
    return mean(squares, axis, dtype=dtype or x.dtype, mask=mask, keepdims=keepdims)


def every(x: View, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> View:
    """1 where no element over the free axes is 0, else 0."""
    holds = tile_of(calls.binary("not_equal", x, 0.0), mask, "float32")
    return tile_of(calls.tensor_reduce("min", holds, axis, keepdims=keepdims), mask, dtype or "bool")


def logical_not(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """1 where x is 0, else 0."""
    return tile_of(calls.binary("equal", x, 0.0), mask, dtype or "bool")


def invert(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """All bits of whole numbers turned around; of truth values the opposite."""
    return tile_of(calls.inverted(x), mask, dtype)


def cos(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """cos(x) = sin(x + pi / 2)."""
    return tile_of(calls.activation("sin", x, pi / 2), mask, dtype)


def tan(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """sin(x) / cos(x)."""
    sine = tile_of(calls.unary("sin", x), mask, "float32")
    return tile_of(calls.binary("divide", sine, cos(x, dtype="float32", mask=mask)), mask, dtype or x.dtype)


def erf_dx(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """2 / sqrt(pi) * exp(-x^2)."""
    squares = tile_of(calls.unary("square", x), mask, "float32")
    return tile_of(calls.activation("exp", squares, log(2 / sqrt(pi)), -1.0), mask, dtype or x.dtype)


def gelu_dx(x: View, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """(1 + erf(x / sqrt(2))) / 2 + x * exp(-x^2 / 2) / sqrt(2 * pi)."""
    squares = tile_of(calls.unary("square", x), mask, "float32")
    powers = tile_of(calls.activation("exp", squares, -log(sqrt(2 * pi)), -0.5), mask)
    slope = tile_of(calls.binary("multiply", x, powers), mask, "float32")
    both = tile_of(calls.activation("erf", x, scale=sqrt(0.5)), mask, "float32")
    half = tile_of(calls.tensor_scalar(both, "add", 1.0, op1="multiply", operand1=0.5), mask)
    return tile_of(calls.binary("add", half, slope), mask, dtype or x.dtype)


def softmax(x: View, axis: Any, *, dtype: Any = None, mask: Any = None, **_: Any) -> View:
    """exp(x) over its sum, over free axes."""
    top = tile_of(calls.tensor_reduce("max", x, axis, keepdims=True), mask)
    left = tile_of(calls.binary("subtract", x, top), mask, "float32")
    powers = tile_of(calls.unary("exp", left), mask)
    total = tile_of(calls.tensor_reduce("add", powers, axis, keepdims=True), mask)
    share = tile_of(calls.unary("reciprocal", total), mask)
    return tile_of(calls.binary("multiply", powers, share), mask, dtype or x.dtype)


def rms_norm(
    x: View, w: View, axis: Any, n: Any, epsilon: float = 1e-6, *, dtype: Any = None, mask: Any = None, **_: Any
) -> View:
    """x / sqrt(sum(x^2) / n + epsilon) * w, the sum over free axes."""
    squares = tile_of(calls.unary("square", x), mask, "float32")
    total = tile_of(calls.tensor_reduce("add", squares, axis, keepdims=True), mask)
    scaled = tile_of(calls.binary("multiply", total, 1.0 / n), mask)
    shifted = tile_of(calls.binary("add", scaled, float(epsilon)), mask)
    share = tile_of(calls.unary("rsqrt", shifted), mask)
    normed = tile_of(calls.binary("multiply", x, share), mask, "float32")
    return tile_of(calls.binary("multiply", normed, w), mask, dtype or x.dtype)


NAMES = {
    "var": var, "all": every, "logical_not": logical_not, "softmax": softmax, "rms_norm": rms_norm, "invert": invert,
    "cos": cos, "tan": tan, "erf_dx": erf_dx, "gelu_dx": gelu_dx,
}  # fmt: skip
"""Under what kernels know them."""
