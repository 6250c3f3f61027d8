"""Maxima and minima of floats that keep NaN, which TVM's take for the smaller and for the larger number."""

from collections.abc import Callable

import tvm
import tvm_ffi
from tvm import ir, tirx


@tvm.transform.module_pass(opt_level=0, name="KeepNaN")
def keep_nan(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with kernels of which a NaN comes out where one of the numbers is NaN, as of NumPy's."""
    found = mod.clone()
    for name, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            found[name] = tvm_ffi.structural_map(func, [(tirx.Max, _larger), (tirx.Min, _smaller)])
    return found


def _larger(found: tirx.Max) -> tirx.Expr:
    return _unless(lambda first, second: second > first, found)


def _smaller(found: tirx.Min) -> tirx.Expr:
    return _unless(lambda first, second: second < first, found)


def _unless(is_second: Callable[[tirx.Expr, tirx.Expr], tirx.Expr], found: tirx.Max | tirx.Min) -> tirx.Expr:
    """The first number, unless the second one is it or NaN: comparisons with NaN are false.

    What is computed has a name, for it is read two or three times: ten of them within each other would be 59,049.
    """
    if not str(found.ty).startswith(("float", "bfloat")):
        return found
    first, second = (_named(name, operand) for name, operand in (("first", found.a), ("second", found.b)))
    takes_second = is_second(first, second)
    if not isinstance(second, tirx.FloatImm):
        number = second.astype("float32") if str(found.ty).startswith("bfloat") else second  # which has no isnan
        takes_second = tirx.any(takes_second, tirx.isnan(number))
    value = tirx.Select(takes_second, second, first)
    value = value if second.same_as(found.b) else tirx.Let(second, found.b, value)
    return value if first.same_as(found.a) else tirx.Let(first, found.a, value)


def _named(name: str, operand: tirx.Expr) -> tirx.Expr:
    """A variable for what is computed, but in bfloat16, of which TVM legalises no variables."""
    is_short = isinstance(operand, tirx.FloatImm | ir.Var | ir.TensorLoad) or str(operand.ty).startswith("bfloat")
    return operand if is_short else ir.Var(name, operand.ty)
