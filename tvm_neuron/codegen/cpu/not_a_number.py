"""Maxima and minima of floats that keep NaN, which TVM's take for the smaller and for the larger number."""

import tvm
import tvm_ffi
from tvm import tirx


@tvm.transform.module_pass(opt_level=0, name="KeepNaN")
def keep_nan(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with kernels of which a NaN comes out where one of the numbers is NaN, as of NumPy's."""
    found = mod.clone()
    for name, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc):
            found[name] = tvm_ffi.structural_map(func, [(tirx.Max, _larger), (tirx.Min, _smaller)])
    return found


def _larger(found: tirx.Max) -> tirx.Expr:
    return _unless(found.b > found.a, found)


def _smaller(found: tirx.Min) -> tirx.Expr:
    return _unless(found.b < found.a, found)


def _unless(is_second: tirx.Expr, found: tirx.Max | tirx.Min) -> tirx.Expr:
    """The first number, unless the second one is it or NaN: comparisons with NaN are false."""
    if not str(found.ty).startswith(("float", "bfloat")):
        return found
    if not isinstance(found.b, tirx.FloatImm):
        number = found.b.astype("float32") if str(found.ty).startswith("bfloat") else found.b  # which has no isnan
        is_second = tirx.any(is_second, tirx.isnan(number))
    return tirx.Select(is_second, found.b, found.a)
