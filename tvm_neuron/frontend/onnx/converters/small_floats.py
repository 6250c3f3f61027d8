"""Conversions from and to the floating formats of up to eight bits, bit by bit.

Reading is a table of 256 values. Writing rounds to the nearest value, ties to the even code: with the exponent
e = max(floor(log2 |x|), e_min), the code of |x| is (e - e_min) << m plus nearbyint(|x| * 2^(m - e)) for e > e_min and
rint alone for e = e_min; a carry of the rounding moves into the exponent by itself.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from tvm import relax, te, tirx

from tvm_neuron.frontend.onnx.converters.converter import Node


@dataclass(frozen=True)
class Format:
    """A floating format: bits of its mantissa, exponent of its least normal value, code of the sign bit, and the
    codes of the largest value, of what is above it and of no number."""

    mantissa_bits: int
    least_exponent: int
    sign: int
    largest: int
    overflow: int
    nan: int
    has_negative_zero: bool = True


FORMATS = {
    "float8_e4m3fn": Format(3, -6, 0x80, 0x7E, 0x7F, 0x7F),
    "float8_e4m3fnuz": Format(3, -7, 0x80, 0x7F, 0x80, 0x80, has_negative_zero=False),
    "float8_e5m2": Format(2, -14, 0x80, 0x7B, 0x7C, 0x7E),
    "float8_e5m2fnuz": Format(2, -15, 0x80, 0x7F, 0x80, 0x80, has_negative_zero=False),
    "float4_e2m1fn": Format(1, 0, 0x8, 0x7, 0x7, 0x8),
}
"""By dtype. float4_e2m1fn has neither infinities nor NaN; a NaN becomes its negative zero, as in ml_dtypes."""

SMALL_FLOATS = (*FORMATS, "float8_e8m0fnu")


def decoded(node: Node, value: relax.Expr, dtype: str) -> relax.Expr:
    """float32 of a tensor of one of the eight-bit formats."""
    table = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype)).astype(np.float32)
    codes = node.emit(relax.op.astype(reinterpreted(node, value, "uint8"), "int32"))
    flat = node.emit(relax.op.reshape(codes, (-1,)))
    found = node.emit(relax.op.take(relax.const(table), flat, axis=0, mode="clip"))
    return node.emit(relax.op.reshape(found, value.ty.shape))


def encoded(node: Node, value: relax.Expr, dtype: str, saturate: bool, round_mode: str) -> relax.Expr:
    """A float32 tensor in `dtype`; float4_e2m1fn comes in the eight-bit format that carries it."""
    if dtype == "float8_e8m0fnu":
        codes = node.bb.emit_te(lambda x: _power_codes(x, saturate, round_mode), value, primfunc_name_hint="encode")
        return reinterpreted(node, codes, dtype)
    codes = node.bb.emit_te(lambda x: _codes(x, FORMATS[dtype], saturate), value, primfunc_name_hint="encode")
    if dtype != "float4_e2m1fn":
        return reinterpreted(node, codes, dtype)
    values = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    carried = relax.const(values.astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    flat = node.emit(relax.op.reshape(node.emit(relax.op.astype(codes, "int32")), (-1,)))
    found = node.emit(relax.op.take(carried, flat, axis=0, mode="clip"))
    found = node.emit(relax.op.reshape(found, value.ty.shape))
    return reinterpreted(node, found, "float8_e4m3fn")


def reinterpreted(node: Node, value: relax.Expr, dtype: str) -> relax.Expr:
    """The same bits as another dtype of the same width."""

    def kernel(bits: te.Tensor) -> te.Tensor:
        return te.compute(bits.shape, lambda *at: tirx.reinterpret(dtype, bits(*at)), name="reinterpret")

    return node.bb.emit_te(kernel, value, primfunc_name_hint="reinterpret")


def _codes(values: te.Tensor, form: Format, saturate: bool) -> te.Tensor:
    def code(*at: tirx.Var) -> tirx.Expr:
        x = values(*at)
        size = tirx.abs(x)
        exponent = tirx.max(_exponent(size), tirx.const(form.least_exponent, "int32"))
        scale_bits = (form.mantissa_bits + 127 - exponent).astype("uint32") << tirx.const(23, "uint32")
        scale = tirx.reinterpret("float32", scale_bits)  # unsigned: TVM takes signed arithmetic for positions
        found = ((exponent - form.least_exponent) << form.mantissa_bits) + tirx.nearbyint(size * scale).astype("int32")
        top = tirx.const(form.largest if saturate else form.overflow, "int32")
        is_above = tirx.any(exponent > 127, found > form.largest)  # 128 is the exponent of the infinities
        found = tirx.Select(is_above, top, found)
        is_negative = (_bits(x) >> 31) != 0
        if not form.has_negative_zero:
            is_negative = tirx.all(is_negative, found != 0)
        found = tirx.Select(is_negative, found | form.sign, found)
        return tirx.Select(tirx.isnan(x), tirx.const(form.nan, "int32"), found).astype("uint8")

    return te.compute(values.shape, code, name="encode")


def _power_codes(values: te.Tensor, saturate: bool, round_mode: str) -> te.Tensor:
    """Exponents alone: the power of two below, above or next to a value, 255 for no number."""

    def code(*at: tirx.Var) -> tirx.Expr:
        bits = _bits(values(*at))
        exponent, fraction = (bits >> 23) & 0xFF, bits & 0x7FFFFF
        match round_mode:
            case "up":
                rises = fraction > 0
            case "down":
                rises = tirx.const(False, "bool")
            case _:
                rises = tirx.any(fraction > 0x400000, tirx.all(fraction == 0x400000, exponent > 0))
        rises = tirx.all(rises, exponent < (254 if saturate else 255))
        return tirx.Select(rises, exponent + 1, exponent).astype("uint8")

    return te.compute(values.shape, code, name="encode")


def _bits(value: tirx.Expr) -> tirx.Expr:
    return tirx.reinterpret("int32", value)


def _exponent(size: tirx.Expr) -> tirx.Expr:
    """floor(log2 of a value of at least 0), -127 below the normal ones, 128 for infinities."""
    return (_bits(size) >> 23) - 127
