"""Kernels for float16 and bfloat16 of operators for which TVM or LLVM has none: in float32, rounded once."""

from tvm import relax

_NARROW = ("float16", "bfloat16")
_OPERATORS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "sinh",
    "isfinite", "isinf", "isnan", "mod", "power",
)  # fmt: skip


def _legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    dtype = str(call.args[0].ty.dtype)
    if dtype not in _NARROW:
        return call.op.get_attr("FLegalize")(bb, call)
    wide = [bb.emit(relax.op.astype(arg, "float32")) for arg in call.args]
    result = bb.emit(relax.Call(call.op, wide, call.attrs))
    return relax.op.astype(result, dtype) if str(call.ty.dtype) == dtype else result


NARROW_FLOATS = {f"relax.{name}": _legalize for name in _OPERATORS}
"""For `relax.transform.LegalizeOps`."""
