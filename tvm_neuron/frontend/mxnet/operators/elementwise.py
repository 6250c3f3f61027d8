"""Operators on elements of one tensor, of two, and of a tensor and a number."""

from collections.abc import Callable
from math import log

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter, same
from tvm_neuron.frontend.refused import RefusedError

_Two = Callable[[Network, str, str], str]

_ONE = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softsign": "Softsign", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "abs": "Abs", "ceil": "Ceil", "floor": "Floor", "negative": "Neg", "erf": "Erf", "sign": "Sign",
    "cos": "Cos", "sin": "Sin", "tan": "Tan", "arccos": "Acos", "arcsin": "Asin", "arctan": "Atan", "cosh": "Cosh",
    "sinh": "Sinh", "arctanh": "Atanh", "arcsinh": "Asinh", "arccosh": "Acosh", "reciprocal": "Reciprocal",
}  # fmt: skip
_ARITHMETIC = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "power": "Pow", "maximum": "Max",
               "minimum": "Min"}  # fmt: skip
_COMPARISONS = {"equal": "Equal", "greater": "Greater", "greater_equal": "GreaterOrEqual", "lesser": "Less",
                "lesser_equal": "LessOrEqual"}  # fmt: skip
_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def _two(op: str) -> _Two:
    return lambda net, x, y: str(net.add(op, x, y))


def _compared(op: str) -> _Two:
    return lambda net, x, y: net.cast(net.add(op, x, y), net.dtype(x))


def _not_equal(net: Network, x: str, y: str) -> str:
    return net.cast(net.add("Not", net.add("Equal", x, y)), net.dtype(x))


def _logical(op: str) -> _Two:
    return lambda net, x, y: net.cast(net.add(op, net.cast(x, np.bool_), net.cast(y, np.bool_)), net.dtype(x))


def _modulo(net: Network, x: str, y: str) -> str:
    """With the sign of the divisor; 0 by 0."""
    whole = net.add("Floor", net.add("Div", x, y))
    zero = net.number(0, x)
    return str(net.add("Where", net.add("Equal", y, zero), zero, net.add("Sub", x, net.add("Mul", whole, y))))


_OF_TWO: dict[str, _Two] = {
    **{name: _two(op) for name, op in _ARITHMETIC.items()},
    **{name: _compared(op) for name, op in _COMPARISONS.items()},
    **{name: _logical(op) for name, op in _LOGIC.items()},
    "not_equal": _not_equal, "mod": _modulo,
    "hypot": lambda net, x, y: net.add("Sqrt", net.add("Add", net.add("Mul", x, x), net.add("Mul", y, y))),
}  # fmt: skip
_OTHER_NAMES = {"add": ("plus",), "sub": ("minus",), "power": ("pow",)}
_NOT_COMMUTATIVE = ("sub", "div", "power", "mod")


def _of_tensors(compute: _Two) -> Converter:
    def convert(net: Network, at: Attributes, left: str, right: str) -> str:
        return compute(net, left, right)

    return convert


def _of_number(compute: _Two, is_reversed: bool = False) -> Converter:
    def convert(net: Network, at: Attributes, data: str) -> str:
        at.skip("is_int")
        number = net.number(at.number("scalar", 1), data)
        return compute(net, number, data) if is_reversed else compute(net, data, number)

    return convert


def _names() -> dict[str, Converter]:
    """Each operator of two under all names that MXNet gave it."""
    found: dict[str, Converter] = {}
    for first, compute in _OF_TWO.items():
        both, one, turned = _of_tensors(compute), _of_number(compute), _of_number(compute, is_reversed=True)
        for name in (first, *_OTHER_NAMES.get(first, ())):
            camel = "".join(part.capitalize() for part in name.split("_"))
            found |= dict.fromkeys((f"broadcast_{name}", f"elemwise_{name}", f"_{name}", f"_{camel}"), both)
            found |= dict.fromkeys((f"_{name}_scalar", f"_{camel}Scalar", f"__{name}_scalar__"), one)
            if first in _NOT_COMMUTATIVE:
                found |= dict.fromkeys((f"_r{name}_scalar", f"_R{camel}Scalar", f"__r{name}_scalar__"), turned)
    return found


def _of_one(op: str) -> Converter:
    def convert(net: Network, at: Attributes, data: str) -> str:
        return str(net.add(op, data))

    return convert


def _logarithm(base: float) -> Converter:
    return lambda net, at, data: net.add("Mul", net.add("Log", data), net.number(1 / log(base), data))


def _toward_zero(net: Network, at: Attributes, data: str) -> str:
    return str(net.add("Mul", net.add("Sign", data), net.add("Floor", net.add("Abs", data))))


def _round(net: Network, at: Attributes, data: str) -> str:
    """Halves away from zero."""
    half = net.number(0.5, data)
    return str(net.add("Mul", net.add("Sign", data), net.add("Floor", net.add("Add", net.add("Abs", data), half))))


def _sum(net: Network, at: Attributes, *data: str) -> str:
    return str(net.add("Sum", *data))


def _clip(net: Network, at: Attributes, data: str) -> str:
    return str(net.add("Clip", data, net.number(at.number("a_min"), data), net.number(at.number("a_max"), data)))


def _hard_sigmoid(net: Network, at: Attributes, data: str) -> str:
    return str(net.add("HardSigmoid", data, alpha=at.number("alpha", 0.2), beta=at.number("beta", 0.5)))


def _where(net: Network, at: Attributes, condition: str, x: str, y: str) -> str:
    if net.rank(condition) == 1 < net.rank(x):  # of whole rows
        condition = net.reshaped(condition, [*net.shape(condition), *[1] * (net.rank(x) - 1)])
    return str(net.add("Where", net.cast(condition, np.bool_), x, y))


def _cast(net: Network, at: Attributes, data: str) -> str:
    return net.cast(data, at.dtype("dtype", np.float32))


def _cast_all(net: Network, at: Attributes, *data: str) -> list[str]:
    """To the widest of their dtypes, or to the narrowest."""
    at.skip("num_outputs")
    kinds = sorted({net.dtype(name) for name in data}, key=lambda kind: kind.itemsize)
    if not kinds:
        raise RefusedError("it has no inputs")
    return [net.cast(name, kinds[0 if at.flag("cast_narrow") else -1]) for name in data]


def _dropout(net: Network, at: Attributes, data: str) -> str:
    at.only("mode", "training")
    at.skip("p", "axes")
    return data


def _made(net: Network, at: Attributes, data: str) -> str:
    at.skip("grad_scale", "valid_thresh", "normalization")
    return data


CONVERTERS: dict[str, Converter] = {
    **_names(),
    **{name: _of_one(op) for name, op in _ONE.items()},
    "square": lambda net, at, data: net.add("Mul", data, data),
    "rsqrt": lambda net, at, data: net.add("Reciprocal", net.add("Sqrt", data)),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
    "fix": _toward_zero,
    "trunc": _toward_zero,
    "round": _round,
    "logical_not": lambda net, at, data: _compared("Equal")(net, data, net.number(0, data)),
    "add_n": _sum, "ElementWiseSum": _sum,
    "clip": _clip,
    "hard_sigmoid": _hard_sigmoid,
    "where": _where,
    "Cast": _cast, "cast": _cast, "amp_cast": _cast,
    "amp_multicast": _cast_all,
    "_copy": same, "identity": same, "BlockGrad": same, "stop_gradient": same,
    "MakeLoss": _made, "make_loss": _made,
    "Dropout": _dropout,
}  # fmt: skip
