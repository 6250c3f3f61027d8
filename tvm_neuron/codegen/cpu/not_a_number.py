"""Maxima and minima of floats that keep NaN, which TVM's take for the smaller and for the larger number.

And comparisons of what may be NaN with itself, which TVM takes for true, and differences: it takes x - x for 0, though
of infinities it is NaN, and x + c - c for x, which it rounds.
"""

import operator
from collections.abc import Callable
from functools import partial
from math import isnan
from typing import Any

import tvm_ffi
from tvm import tirx

from tvm_neuron.codegen.cpu.functions import has_bfloat16
from tvm_neuron.codegen.cpu.kernel_pass import kernel_pass


def _by_llvm(name: str, found: tirx.Max | tirx.Min) -> tirx.Expr:
    """LLVM's maximum or minimum: NaN if one of the numbers is.

    A comparison would read each number two or three times, and names for them are refused by those of TVM's passes that
    go through an expression twice.
    """
    return tirx.call_llvm_pure_intrin(found.ty, name, found.a, found.b) if _is_float(found) else found


def _by_comparison(is_second: Callable[[Any, Any], tirx.Expr], found: tirx.Max | tirx.Min) -> tirx.Expr:
    """The first number, unless the second one is it or NaN: comparisons with NaN are false."""
    if not _is_float(found):
        return found
    first, second = found.a, found.b
    for constant in (first, second):
        if isinstance(constant, tirx.FloatImm) and isnan(constant.value):
            return constant
    takes_second = is_second(second, first)
    if not isinstance(second, tirx.FloatImm):
        takes_second = tirx.any(takes_second, _is_nan(second))
    return tirx.Select(takes_second, second, first)


def _equal_to_itself(found: Any) -> tirx.Expr:
    return tirx.Not(_is_nan(found.a)) if _is_of_itself(found) else found


def _other_than_itself(found: tirx.NE) -> tirx.Expr:
    return _is_nan(found.a) if _is_of_itself(found) else found


def _is_of_itself(found: Any) -> bool:
    return _is_float(found.a) and bool(tvm_ffi.structural_equal(found.a, found.b))


def _without_what_cancels(found: tirx.Sub) -> tirx.Expr:
    """With the first number's bits where some of it is in the second one too: TVM doesn't look behind them."""
    if not _is_float(found):
        return found
    if not any(tvm_ffi.structural_equal(one, other) for one in _parts(found.a) for other in _parts(found.b)):
        return found
    dtype = str(found.a.ty)
    return tirx.reinterpret(dtype, tirx.reinterpret(dtype.replace("float", "uint"), found.a)) - found.b


def _parts(number: tirx.Expr, depth: int = 2) -> list[tirx.Expr]:
    """The expression and what it is computed of in so many steps."""
    names = ("a", "b", "true_value", "false_value", "body", "value")
    inner = [getattr(number, name) for name in names if depth and isinstance(getattr(number, name, None), tirx.Expr)]
    return [number, *(part for each in inner for part in _parts(each, depth - 1))]


def _is_float(number: tirx.Expr) -> bool:
    return str(number.ty).startswith(("float", "bfloat"))


def _is_nan(number: tirx.Expr) -> tirx.Expr:
    return tirx.isnan(number.astype("float32") if str(number.ty).startswith("bfloat") else number)


_ITSELF = [*((kind, _equal_to_itself) for kind in (tirx.EQ, tirx.LE, tirx.GE)), (tirx.NE, _other_than_itself)]
_OTHERS = [
    (tirx.Max, partial(_by_llvm, "llvm.maximum")),
    (tirx.Min, partial(_by_llvm, "llvm.minimum")),
    *_ITSELF,
    (tirx.Sub, _without_what_cancels),
]
_WITH_BFLOAT16 = [
    (tirx.Max, partial(_by_comparison, operator.gt)),
    (tirx.Min, partial(_by_comparison, operator.lt)),
    *_ITSELF,
]
"""TVM's legalisation of bfloat16 knows neither LLVM's functions nor bits."""


def _kept(func: tirx.PrimFunc) -> tirx.PrimFunc:
    return tvm_ffi.structural_map(func, _WITH_BFLOAT16 if has_bfloat16(func) else _OTHERS)


keep_nan = kernel_pass("KeepNaN", _kept)
"""Of kernels a NaN comes out where one of the numbers is NaN, as of NumPy's."""
