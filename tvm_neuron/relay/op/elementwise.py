"""Operators on each element: functions of one tensor, and of two that are broadcast to each other."""

import math
from collections.abc import Callable
from typing import Any

from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.op.declare import R, Tensor, operator


def _unary(name: str, function: Callable[[Any], Any], meaning: str) -> Callable[..., Any]:
    def body(data: Tensor) -> Tensor:
        return function(data)

    body.__name__, body.__doc__ = name, f"{meaning}, of each element."
    return operator(name)(body)


def _binary(name: str, function: Callable[[Any, Any], Any], meaning: str) -> Callable[..., Any]:
    def body(lhs: Tensor, rhs: Tensor) -> Tensor:
        return function(lhs, rhs)

    body.__name__, body.__doc__ = name, f"{meaning}, of tensors that are broadcast to each other."
    return operator(name)(body)


def is_float(data: Tensor) -> bool:
    """Whether its elements are floating-point numbers."""
    return "float" in str(data.ty.dtype)


def number(value: float, like: Tensor) -> Any:
    """A constant of the dtype of `like`."""
    return relax.const(value, str(like.ty.dtype))


def _of_floats(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that leaves whole numbers as they are."""
    return lambda data: function(data) if is_float(data) else data


def _of_bits(name: str, function: Callable[..., Any], meaning: str) -> Callable[..., Any]:
    def body(lhs: Tensor, rhs: Tensor) -> Tensor:
        if is_float(lhs):
            raise ModelError(f"its operands are {lhs.ty.dtype}; it takes integers or bool, so cast them first")
        return function(lhs, rhs)

    body.__name__, body.__doc__ = name, f"{meaning}, of tensors that are broadcast to each other; not of floats."
    return operator(name)(body)


def _logarithm(base: float) -> Callable[[Any], Any]:
    return lambda data: R.multiply(R.log(data), number(1 / math.log(base), data))


def _truncated_quotient(lhs: Any, rhs: Any) -> Any:
    return _of_floats(R.trunc)(R.divide(lhs, rhs))


def _truncated_remainder(lhs: Any, rhs: Any) -> Any:
    return R.subtract(lhs, R.multiply(_truncated_quotient(lhs, rhs), rhs))


log = _unary("log", R.log, "The natural logarithm")
log2 = _unary("log2", _logarithm(2), "The logarithm to base 2")
log10 = _unary("log10", _logarithm(10), "The logarithm to base 10")
tan = _unary("tan", R.tan, "The tangent")
cos = _unary("cos", R.cos, "The cosine")
cosh = _unary("cosh", R.cosh, "The hyperbolic cosine")
sin = _unary("sin", R.sin, "The sine")
sinh = _unary("sinh", R.sinh, "The hyperbolic sine")
acos = _unary("acos", R.acos, "The inverse cosine")
acosh = _unary("acosh", R.acosh, "The inverse hyperbolic cosine")
asin = _unary("asin", R.asin, "The inverse sine")
asinh = _unary("asinh", R.asinh, "The inverse hyperbolic sine")
atan = _unary("atan", R.atan, "The inverse tangent")
atanh = _unary("atanh", R.atanh, "The inverse hyperbolic tangent")
exp = _unary("exp", R.exp, "The exponential")
erf = _unary("erf", R.erf, "The error function")
sqrt = _unary("sqrt", R.sqrt, "The square root")
rsqrt = _unary("rsqrt", R.rsqrt, "One over the square root")
sigmoid = _unary("sigmoid", R.sigmoid, "1 / (1 + exp(-x))")
floor = _unary("floor", _of_floats(R.floor), "The next whole number below")
ceil = _unary("ceil", _of_floats(R.ceil), "The next whole number above")
trunc = _unary("trunc", _of_floats(R.trunc), "The whole number towards zero")
round = _unary("round", _of_floats(R.round), "The nearest whole number, halves to the even one")  # noqa: A001
abs = _unary("abs", R.abs, "The absolute value")  # noqa: A001
sign = _unary("sign", R.sign, "-1, 0 or 1")
tanh = _unary("tanh", R.tanh, "The hyperbolic tangent")
negative = _unary("negative", R.negative, "The negated value")
logical_not = _unary("logical_not", R.logical_not, "Not")
bitwise_not = _unary("bitwise_not", R.bitwise_not, "The bits inverted")
isnan = _unary("isnan", R.isnan, "Whether it is NaN")
isfinite = _unary("isfinite", R.isfinite, "Whether it is a finite number")
isinf = _unary("isinf", R.isinf, "Whether it is an infinity")
copy = _unary("copy", lambda data: data, "The same value")

add = _binary("add", R.add, "The sum")
subtract = _binary("subtract", R.subtract, "The difference")
multiply = _binary("multiply", R.multiply, "The product")
divide = _binary("divide", R.divide, "The quotient, of whole numbers towards zero")
floor_divide = _binary("floor_divide", R.floor_divide, "The quotient rounded down")
trunc_divide = _binary("trunc_divide", _truncated_quotient, "The quotient rounded towards zero")
power = _binary("power", R.power, "The power")
mod = _binary("mod", _truncated_remainder, "The remainder with the sign of the dividend")
floor_mod = _binary("floor_mod", R.floor_mod, "The remainder with the sign of the divisor")
trunc_mod = _binary("trunc_mod", _truncated_remainder, "The remainder with the sign of the dividend")
logical_and = _of_bits("logical_and", R.logical_and, "And")
logical_or = _of_bits("logical_or", R.logical_or, "Or")
logical_xor = _of_bits("logical_xor", R.logical_xor, "Either, not both")
bitwise_and = _of_bits("bitwise_and", R.bitwise_and, "And, of each bit")
bitwise_or = _of_bits("bitwise_or", R.bitwise_or, "Or, of each bit")
bitwise_xor = _of_bits("bitwise_xor", R.bitwise_xor, "Either, not both, of each bit")
equal = _binary("equal", R.equal, "Whether they are equal")
not_equal = _binary("not_equal", R.not_equal, "Whether they differ")
less = _binary("less", R.less, "Whether the first is less")
less_equal = _binary("less_equal", R.less_equal, "Whether the first is no greater")
greater = _binary("greater", R.greater, "Whether the first is greater")
greater_equal = _binary("greater_equal", R.greater_equal, "Whether the first is no less")
maximum = _binary("maximum", R.maximum, "The greater one")
minimum = _binary("minimum", R.minimum, "The lesser one")
right_shift = _of_bits("right_shift", R.right_shift, "The bits moved down")
left_shift = _of_bits("left_shift", R.left_shift, "The bits moved up")


@operator("clip")
def clip(a: Tensor, a_min: float, a_max: float) -> Tensor:
    """Each element, at least `a_min` and at most `a_max`."""
    return R.minimum(R.maximum(a, number(a_min, a)), number(a_max, a))


@operator("cast")
def cast(data: Tensor, dtype: str) -> Tensor:
    """The elements in another dtype."""
    return R.astype(data, dtype)


@operator("cast_like")
def cast_like(data: Tensor, dtype_like: Tensor) -> Tensor:
    """The elements in the dtype of another tensor."""
    return R.astype(data, dtype_like.ty.dtype)


@operator("where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` where the condition is not zero, else `y`."""
    is_bool = str(condition.ty.dtype) == "bool"
    return R.where(condition if is_bool else R.not_equal(condition, number(0, condition)), x, y)
