"""reduce_precision: float32 rounded to fewer bits, on the bits themselves, as casts there and back may be left out."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm_neuron.frontend.bits import BITS_DOMAIN
from tvm_neuron.frontend.graph import Graph
from tvm_neuron.frontend.refused import RefusedError
from tvm_neuron.frontend.xla.operators.elementwise import elementwise
from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of

_MANTISSA, _EXPONENT, _BIAS = 23, 8, 127
_SIGN, _INFINITY = 1 << 31, ((1 << _EXPONENT) - 1) << _MANTISSA


def _reduce_precision(scope: Scope, op: Any, converters: Mapping[str, Converter]) -> None:
    exponent, mantissa = (int(op.attributes[name]) for name in ("exponent_bits", "mantissa_bits"))
    if dtype_of(op.operands[0]) != np.float32:
        raise RefusedError(f"it rounds {dtype_of(op.operands[0])}; float32 alone can be")

    def compute(graph: Graph, names: list[str], _: np.dtype[Any]) -> str:
        (value,) = names
        bits = str(graph.add("uint32", value, domain=BITS_DOMAIN))
        bits = _fitted(graph, _rounded(graph, bits, mantissa), exponent)
        found = graph.add("float32", bits, domain=BITS_DOMAIN)
        return str(graph.add("Where", graph.add("IsNaN", value), value, found))

    elementwise(compute)(scope, op, converters)


def _rounded(graph: Graph, bits: str, mantissa: int) -> str:
    """To the nearest with so many bits of mantissa, to even between two."""
    left_out = _MANTISSA - mantissa
    if left_out <= 0:
        return bits
    last = graph.add("BitShift", bits, graph.constant(left_out, np.uint32), direction="RIGHT")
    odd = graph.add("BitwiseAnd", last, graph.constant(1, np.uint32))
    moved = graph.add("Add", graph.add("Add", bits, odd), graph.constant((1 << (left_out - 1)) - 1, np.uint32))
    return str(graph.add("BitwiseAnd", moved, graph.constant((1 << 32) - (1 << left_out), np.uint32)))


def _fitted(graph: Graph, bits: str, exponent: int) -> str:
    """Infinite above the exponents of so many bits; 0 below those of normal numbers, as XLA has it."""
    if exponent >= _EXPONENT:
        return bits
    reach = (1 << (exponent - 1)) - 1
    sign = graph.add("BitwiseAnd", bits, graph.constant(_SIGN, np.uint32))
    size = graph.add("BitwiseAnd", bits, graph.constant(_INFINITY, np.uint32))
    is_above = graph.add("Greater", size, graph.constant((_BIAS + reach) << _MANTISSA, np.uint32))
    is_below = graph.add("LessOrEqual", size, graph.constant((_BIAS - reach) << _MANTISSA, np.uint32))
    infinite = graph.add("BitwiseOr", sign, graph.constant(_INFINITY, np.uint32))
    return str(graph.add("Where", is_above, infinite, graph.add("Where", is_below, sign, bits)))


CONVERTERS: dict[str, Converter] = {"stablehlo.reduce_precision": _reduce_precision}
