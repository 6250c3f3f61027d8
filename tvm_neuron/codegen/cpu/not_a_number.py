"""Maxima and minima of floats that keep NaN, which TVM's take for the smaller and for the larger number."""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, tirx

from tvm_neuron.codegen.cpu.functions import has_bfloat16


@tvm.transform.module_pass(opt_level=0, name="KeepNaN")
def keep_nan(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with kernels of which a NaN comes out where one of the numbers is NaN, as of NumPy's."""
    found = mod.clone()
    for name, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            choose = partial(_unless, names_operands=not has_bfloat16(func))
            found[name] = tvm_ffi.structural_map(
                func,
                [(tirx.Max, partial(choose, operator.gt)), (tirx.Min, partial(choose, operator.lt))],
            )
    return found


def _unless(is_second: Callable[[Any, Any], tirx.Expr], found: tirx.Max | tirx.Min, names_operands: bool) -> tirx.Expr:
    """The first number, unless the second one is it or NaN: comparisons with NaN are false.

    What is computed has a name, for it is read two or three times: ten of them within each other would be 59,049.
    """
    if not str(found.ty).startswith(("float", "bfloat")):
        return found
    first, second = found.a, found.b
    if names_operands:
        first, second = _named("first", first), _named("second", second)
    takes_second = is_second(second, first)
    if not isinstance(second, tirx.FloatImm):
        number = second.astype("float32") if str(found.ty).startswith("bfloat") else second  # which has no isnan
        takes_second = tirx.any(takes_second, tirx.isnan(number))
    value = tirx.Select(takes_second, second, first)
    value = value if second.same_as(found.b) else tirx.Let(second, found.b, value)
    return value if first.same_as(found.a) else tirx.Let(first, found.a, value)


def _named(name: str, operand: tirx.Expr) -> tirx.Expr:
    return operand if isinstance(operand, tirx.FloatImm | ir.Var | ir.TensorLoad) else ir.Var(name, operand.ty)
