"""Functions of nki.language that are several of its calls: variance, softmax, a norm, all and not."""

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


NAMES = {"var": var, "all": every, "logical_not": logical_not, "softmax": softmax, "rms_norm": rms_norm}
"""Under what kernels know them."""
