"""Kernels of x * 0 and 0 / x that read their zero: one that is written into them TVM folds, also for infinities."""

from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax, topi

from tvm_neuron.runtime.tensors import as_numpy

_ARITHMETIC: dict[str, Callable[..., Any]] = {"relax.multiply": topi.multiply, "relax.divide": topi.divide}


def _legalize(name: str) -> Callable[[relax.BlockBuilder, relax.Call], relax.Expr]:
    usual = tvm.ir.Op.get(name).get_attr("FLegalize")

    def legalize(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        if any(map(_is_zero, call.args)):
            return bb.call_te(_ARITHMETIC[name], *call.args)
        return usual(bb, call)

    return legalize


def _is_zero(operand: relax.Expr) -> bool:
    """Whether it is a floating constant of no dimensions, which TVM writes into the kernel, and zero."""
    if not isinstance(operand, tvm.ir.GenericConst) or operand.ty.ndim:
        return False
    value = as_numpy(operand.value)
    return value.dtype.kind not in "iub" and not value.any()


ZERO_OPERANDS = {name: _legalize(name) for name in _ARITHMETIC}
"""For `relax.transform.LegalizeOps`."""
