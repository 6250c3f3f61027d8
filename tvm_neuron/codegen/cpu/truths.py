"""Kernels that compare truths, as numbers of 8 bits: LLVM's code of TVM compares bools as floats, and is refused."""

from collections.abc import Callable

import tvm
from tvm import relax

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_CHOICES = ("maximum", "minimum")


def _legalize(name: str) -> Callable[[relax.BlockBuilder, relax.Call], relax.Expr]:
    usual = tvm.ir.Op.get(name).get_attr("FLegalize")

    def legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        if str(call.args[0].ty.dtype) != "bool":
            return usual(bb, call)
        numbers = [bb.emit(relax.op.astype(arg, "uint8")) for arg in call.args]
        found = bb.emit(relax.Call(call.op, numbers, call.attrs))
        return found if str(found.ty.dtype) == "bool" else bb.emit(relax.op.astype(found, "bool"))

    return legalize


TRUTHS = {name: _legalize(name) for name in (f"relax.{op}" for op in (*_COMPARISONS, *_CHOICES))}
"""For `relax.transform.LegalizeOps`."""
