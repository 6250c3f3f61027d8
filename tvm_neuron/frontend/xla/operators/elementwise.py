"""Arithmetic, comparisons, selections and casts. Operands stay as they broadcast; what repeats is computed once."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import helper

from tvm_neuron.frontend.bits import BITS_DOMAIN
from tvm_neuron.frontend.graph import Graph
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, shape_of

Compute = Callable[[Graph, list[str], np.dtype[Any]], str]
"""The result's name, from the operands' and the dtype of the first."""


def elementwise(compute: Compute) -> Converter:
    """Of operands as they broadcast."""

    def convert(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
        names = [scope.loose(value) for value in op.operands]
        sizes = np.broadcast_shapes(*(scope.tensors[value].sizes for value in op.operands))
        scope.set(op.results[0], compute(scope.graph, names, dtype_of(op.operands[0])), sizes)

    return convert


def _plain(name: str) -> Converter:
    return elementwise(lambda graph, names, _: graph.add(name, *names))


def _by_kind(of_floats: str, of_bools: str, of_integers: str = "") -> Converter:
    """By the dtype: one operator for numbers, another for truths, a third for integers where these have one."""

    def compute(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
        chosen = of_bools if dtype == np.bool_ else of_integers if of_integers and dtype.kind in "iu" else of_floats
        return str(graph.add(chosen, *names))

    return elementwise(compute)


def _number(graph: Graph, value: float, dtype: np.dtype[Any]) -> str:
    return graph.constant(value, dtype)


def _remainder(graph: Graph, names: list[str], _: np.dtype[Any]) -> str:
    return str(graph.add("Mod", *names, fmod=1))  # with the sign of the dividend


def _rsqrt(graph: Graph, names: list[str], _: np.dtype[Any]) -> str:
    return str(graph.add("Reciprocal", graph.add("Sqrt", *names)))


def _cbrt(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    root = graph.add("Pow", graph.add("Abs", *names), _number(graph, 1 / 3, dtype))
    return str(graph.add("Mul", graph.add("Sign", *names), root))


def _expm1(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """Near 0 by 2 tanh(x/2) / (1 - tanh(x/2)), where exp(x) - 1 has lost the digits."""
    one = _number(graph, 1, dtype)
    half = graph.add("Tanh", graph.add("Mul", *names, _number(graph, 0.5, dtype)))
    near = graph.add("Div", graph.add("Add", half, half), graph.add("Sub", one, half))
    is_near = graph.add("Less", graph.add("Abs", *names), _number(graph, 0.5, dtype))
    return str(graph.add("Where", is_near, near, graph.add("Sub", graph.add("Exp", *names), one)))


def _log1p(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """log(u) x / (u - 1) with u = 1 + x, whose rounding cancels; x itself where u is 1."""
    one = _number(graph, 1, dtype)
    moved = graph.add("Add", *names, one)
    is_small = graph.add("Less", graph.add("Abs", *names), _number(graph, 0.5, dtype))
    gap = graph.add("Sub", moved, one)
    is_none = graph.add("Equal", gap, _number(graph, 0, dtype))
    ratio = graph.add("Div", *names, graph.add("Where", is_none, one, gap))
    near = graph.add("Where", is_none, names[0], graph.add("Mul", graph.add("Log", moved), ratio))
    return str(graph.add("Where", is_small, near, graph.add("Log", moved)))


def _atan2(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """The angle of (x, y): that of y/x, moved by pi where x is negative."""
    y, x = names
    zero = _number(graph, 0, dtype)
    pi, half = _number(graph, np.pi, dtype), _number(graph, np.pi / 2, dtype)
    sign = graph.add("Where", graph.add("Less", y, zero), _number(graph, -1, dtype), _number(graph, 1, dtype))
    is_zero = graph.add("Equal", x, zero)
    safe = graph.add("Where", is_zero, _number(graph, 1, dtype), x)
    angle = graph.add("Atan", graph.add("Div", y, safe))
    turned = graph.add("Add", angle, graph.add("Mul", sign, pi))
    found = graph.add("Where", graph.add("Less", x, zero), turned, angle)
    upright = graph.add("Where", graph.add("Equal", y, zero), zero, graph.add("Mul", sign, half))
    return str(graph.add("Where", is_zero, upright, found))


def _round_away(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    moved = graph.add("Floor", graph.add("Add", graph.add("Abs", *names), _number(graph, 0.5, dtype)))
    return str(graph.add("Mul", graph.add("Sign", *names), moved))


def _is_finite(graph: Graph, names: list[str], _: np.dtype[Any]) -> str:
    return str(graph.add("Not", graph.add("Or", graph.add("IsInf", *names), graph.add("IsNaN", *names))))


def _of_bits(compute: Compute) -> Compute:
    """Of unsigned numbers with the same bits, which are all that ONNX shifts."""

    def converted(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
        if dtype.kind == "u":
            return compute(graph, names, dtype)
        unsigned = np.dtype(f"u{dtype.name}")
        cast = [graph.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(unsigned)) for name in names]
        found = compute(graph, cast, unsigned)
        return str(graph.add("Cast", found, to=helper.np_dtype_to_tensor_dtype(dtype)))

    return converted


def _shift(direction: str) -> Compute:
    return _of_bits(lambda graph, names, _: graph.add("BitShift", *names, direction=direction))


def _shift_with_sign(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """What comes in from the left is the sign: bits of a negative number are shifted turned over."""
    signed = np.dtype(dtype.name.removeprefix("u"))
    value, count = (graph.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(signed)) for name in names)
    is_negative = graph.add("Less", value, _number(graph, 0, signed))
    turned = graph.add("Where", is_negative, graph.add("BitwiseNot", value), value)
    shifted = _shift("RIGHT")(graph, [turned, count], signed)
    found = graph.add("Where", is_negative, graph.add("BitwiseNot", shifted), shifted)
    return str(graph.add("Cast", found, to=helper.np_dtype_to_tensor_dtype(dtype)))


def _ones(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """How many bits are set: sums of neighbours, of pairs, of fours and so on, all in one number."""

    def shifted(name: str, by: int) -> str:
        return str(graph.add("BitShift", name, _number(graph, by, dtype), direction="RIGHT"))

    (found,) = names
    bits, width = 8 * dtype.itemsize, 1
    while width < bits:
        mask = _number(graph, sum((2**width - 1) << place for place in range(0, bits, 2 * width)), dtype)
        sides = [graph.add("BitwiseAnd", side, mask) for side in (found, shifted(found, width))]
        found, width = str(graph.add("Add", *sides)), 2 * width
    return found


def _leading_zeros(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
    """Bits that are not set once the first one that is was copied to all behind it."""
    (found,), by = names, 1
    while by < 8 * dtype.itemsize:
        moved = graph.add("BitShift", found, _number(graph, by, dtype), direction="RIGHT")
        found, by = str(graph.add("BitwiseOr", found, moved)), 2 * by
    return _ones(graph, [str(graph.add("BitwiseNot", found))], dtype)


def _square(graph: Graph, names: list[str], _: np.dtype[Any]) -> str:
    return str(graph.add("Mul", names[0], names[0]))


def _clamp(graph: Graph, names: list[str], _: np.dtype[Any]) -> str:
    low, value, high = names
    return str(graph.add("Min", graph.add("Max", value, low), high))


_COMPARE = {"EQ": "Equal", "LT": "Less", "LE": "LessOrEqual", "GT": "Greater", "GE": "GreaterOrEqual"}


def _compare(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    direction = compared(op)

    def compute(graph: Graph, names: list[str], dtype: np.dtype[Any]) -> str:
        if dtype == np.bool_ and direction not in ("EQ", "NE"):
            names = [graph.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int32))) for name in names]
        if direction == "NE":
            return str(graph.add("Not", graph.add("Equal", *names)))
        return str(graph.add(_COMPARE[direction], *names))

    elementwise(compute)(scope, op, {})


def compared(op: Any) -> str:
    """EQ, NE, LT, LE, GT or GE."""
    return str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")


def _select(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    names = [scope.loose(value) for value in op.operands]
    sizes = np.broadcast_shapes(*(scope.tensors[value].sizes for value in op.operands))
    scope.set(op.results[0], scope.graph.add("Where", *names), sizes)


def _convert(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    (value,), (result,) = op.operands, op.results
    source = scope.tensors[value]
    if dtype_of(value) == dtype_of(result):
        scope.set(result, source.name, source.sizes)
        return
    to = helper.np_dtype_to_tensor_dtype(dtype_of(result))
    scope.set(result, scope.graph.add("Cast", source.name, to=to), source.sizes)


def _bitcast(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    known, dtype = scope.known(op.operands[0]), dtype_of(op.results[0])
    if known is None:
        if dtype.itemsize != dtype_of(op.operands[0]).itemsize:
            scope.set(op.results[0], _of_another_width(scope, op.operands[0], dtype))
            return
        scope.set(op.results[0], scope.graph.add(dtype.name, scope.full(op.operands[0]), domain=BITS_DOMAIN))
        return
    bits = known.ravel().view(dtype)
    scope.set(op.results[0], scope.graph.constant(bits.reshape(shape_of(op.results[0]))))


def _of_another_width(scope: Scope, value: Any, dtype: np.dtype[Any]) -> str:
    """Several narrow numbers along the last dimension for each wide one, its low bits first, or the inverse."""
    graph, given = scope.graph, dtype_of(value)
    count, bits = max(given.itemsize, dtype.itemsize) // min(given.itemsize, dtype.itemsize), 8 * dtype.itemsize
    word, unsigned = np.dtype(np.uint64), np.dtype(f"u{dtype.itemsize}")
    found = scope.full(value)
    if given.kind != "u":
        found = graph.add(f"uint{8 * given.itemsize}", found, domain=BITS_DOMAIN)
    found = graph.add("Cast", found, to=helper.np_dtype_to_tensor_dtype(word))
    if dtype.itemsize < given.itemsize:
        places = graph.constant(np.arange(count, dtype=word) * word.type(bits))
        found = graph.add("BitShift", graph.add("Unsqueeze", found, graph.ints([-1])), places, direction="RIGHT")
        found = graph.add("BitwiseAnd", found, graph.constant(word.type(2**bits - 1)))
    else:
        places = graph.constant(np.arange(count, dtype=word) * word.type(8 * given.itemsize))
        found = graph.add("BitShift", found, places, direction="LEFT")
        found = graph.add("ReduceSum", found, graph.ints([-1]), keepdims=0)
    found = graph.add("Cast", found, to=helper.np_dtype_to_tensor_dtype(unsigned))
    return str(found if dtype == unsigned else graph.add(dtype.name, found, domain=BITS_DOMAIN))


def _same(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    for value, result in zip(op.operands, op.results, strict=True):
        tensor = scope.tensors[value]
        scope.set(result, tensor.name, tensor.sizes)


CONVERTERS: dict[str, Converter] = {
    "stablehlo.abs": _plain("Abs"),
    "stablehlo.add": _by_kind("Add", "Or"),
    "stablehlo.and": _by_kind("BitwiseAnd", "And"),
    "stablehlo.atan2": elementwise(_atan2),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.cbrt": elementwise(_cbrt),
    "stablehlo.ceil": _plain("Ceil"),
    "stablehlo.clamp": elementwise(_clamp),
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.cosine": _plain("Cos"),
    "stablehlo.count_leading_zeros": elementwise(_of_bits(_leading_zeros)),
    "stablehlo.divide": _plain("Div"),
    "stablehlo.exponential": _plain("Exp"),
    "stablehlo.exponential_minus_one": elementwise(_expm1),
    "stablehlo.floor": _plain("Floor"),
    "stablehlo.is_finite": elementwise(_is_finite),
    "stablehlo.log": _plain("Log"),
    "stablehlo.log_plus_one": elementwise(_log1p),
    "stablehlo.logistic": _plain("Sigmoid"),
    "stablehlo.maximum": _by_kind("Max", "Or"),
    "stablehlo.minimum": _by_kind("Min", "And"),
    "stablehlo.multiply": _by_kind("Mul", "And"),
    "stablehlo.negate": _plain("Neg"),
    "stablehlo.not": _by_kind("BitwiseNot", "Not"),
    "stablehlo.optimization_barrier": _same,
    "stablehlo.or": _by_kind("BitwiseOr", "Or"),
    "stablehlo.popcnt": elementwise(_of_bits(_ones)),
    "stablehlo.power": _plain("Pow"),
    "stablehlo.remainder": elementwise(_remainder),
    "stablehlo.round_nearest_afz": elementwise(_round_away),
    "stablehlo.round_nearest_even": _plain("Round"),
    "stablehlo.rsqrt": elementwise(_rsqrt),
    "stablehlo.select": _select,
    "stablehlo.shift_left": elementwise(_shift("LEFT")),
    "stablehlo.shift_right_arithmetic": elementwise(_shift_with_sign),
    "stablehlo.shift_right_logical": elementwise(_shift("RIGHT")),
    "stablehlo.sign": _plain("Sign"),
    "stablehlo.sine": _plain("Sin"),
    "stablehlo.sqrt": _plain("Sqrt"),
    "stablehlo.subtract": _plain("Sub"),
    "stablehlo.tan": _plain("Tan"),
    "stablehlo.tanh": _plain("Tanh"),
    "stablehlo.xor": _by_kind("BitwiseXor", "Xor"),
    "chlo.acos": _plain("Acos"),
    "chlo.acosh": _plain("Acosh"),
    "chlo.asin": _plain("Asin"),
    "chlo.asinh": _plain("Asinh"),
    "chlo.atan": _plain("Atan"),
    "chlo.atanh": _plain("Atanh"),
    "chlo.cosh": _plain("Cosh"),
    "chlo.erf": _plain("Erf"),
    "chlo.is_inf": _plain("IsInf"),
    "chlo.sinh": _plain("Sinh"),
    "chlo.square": elementwise(_square),
    "chlo.tan": _plain("Tan"),
}
