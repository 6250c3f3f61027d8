"""exp of float32 as arithmetic, which becomes vectors; a call of the C library for each element does not.

exp(x) = 2^n * exp(r) with n = round(x / ln 2), so that |r| <= ln(2) / 2, where Taylor's series to the seventh power is
off by 5e-9 of the result, a twelfth of float32's last place. Infinities, NaN and denormal results come out right.
"""

import math
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, tirx

_LN2_HIGH = float(np.float32(math.ldexp(math.floor(math.ldexp(math.log(2), 15)), -15)))
"""ln 2 to 15 bits: its products with whole numbers up to 9 bits are exact."""
_LN2_LOW = math.log(2) - _LN2_HIGH
_BIAS = 127
"""2^n has the exponent bits n + 127."""
_ROUNDED = 1.5 * 2.0**23 + 2 * _BIAS
"""Added to a small number it leaves that rounded, plus two biases, in the lowest bits of the sum."""
_LOWEST, _HIGHEST = -104.0, 89.0
"""exp is 0 below and infinite above."""


def expand(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel with arithmetic instead of exp and sigmoid of float32; one with bfloat16 in it stays as it is."""
    return func if has_bfloat16(func) else tvm_ffi.structural_map(func, (ir.Call, _expanded))


def has_bfloat16(func: tirx.PrimFunc) -> bool:
    """Whether it reads or writes any: TVM's legalisation of bfloat16 leaves variables of expressions without values."""
    found: list[Any] = []
    tvm_ffi.structural_walk(func, ((ir.TensorLoad, tirx.BufferStore), found.append))
    types = (node.ty if isinstance(node, ir.TensorLoad) else node.value.ty for node in found)
    return any(str(each).startswith("bfloat") for each in types)


def _expanded(call: ir.Call) -> tirx.Expr:
    name = getattr(call.op, "name", "")
    if name not in ("tirx.exp", "tirx.sigmoid") or str(call.ty) != "float32":
        return call
    if name == "tirx.exp":
        return exp(call.args[0])
    return _number(1) / (_number(1) + exp(-call.args[0]))


def _number(value: float) -> tirx.Expr:
    return tirx.const(value, "float32")


def exp(x: tirx.Expr) -> tirx.Expr:
    """e to the power x, float32: within two units of the last place.

    NaN goes through: both limits are compared so that it stays, and no float becomes an integer but by its bits.
    """
    at, rest = (ir.Var(name, ir.PrimType("float32")) for name in ("at", "rest"))
    bits, half = (ir.Var(name, ir.PrimType("int32")) for name in ("bits", "half"))
    series = _number(1 / math.factorial(7))
    for power in range(6, -1, -1):
        series = series * rest + _number(1 / math.factorial(power))
    value = series * _with_exponent(half) * _with_exponent(bits - half)  # two factors: 2^n alone may be out of range
    value = tirx.Let(half, bits >> 1, value)
    number = tirx.reinterpret("float32", bits) - _number(_ROUNDED)
    value = tirx.Let(rest, at - number * _number(_LN2_HIGH) - number * _number(_LN2_LOW), value)
    value = tirx.Let(bits, tirx.reinterpret("int32", at * _number(1 / math.log(2)) + _number(_ROUNDED)), value)
    return tirx.Let(at, tirx.max(_number(_LOWEST), tirx.min(_number(_HIGHEST), x)), value)


def _with_exponent(bits: tirx.Expr) -> tirx.Expr:
    """2 to the power of the lowest nine bits less the bias; those are below 256."""
    return tirx.reinterpret("float32", bits << 23)
