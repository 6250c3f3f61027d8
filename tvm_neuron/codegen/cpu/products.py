"""Products of matrices on the CPU: the runtime's function, which calls NumPy's BLAS, unless they are small.

A BLAS chooses its kernels on the machine that it runs on, so a library that was compiled elsewhere is as fast.
"""

from math import prod

import tvm
from tvm import relax, tirx

FEW_PRODUCTS = 1 << 14
"""Loops take no longer for these than a call of the runtime's function, about 10 us."""


def _matmul(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    dtypes = {str(expr.ty.dtype) for expr in (call, *call.args)}
    is_taken = len(dtypes) == 1 and dtypes <= {"float32", "float64"} and isinstance(call.ty.shape, relax.ShapeExpr)
    if not is_taken or _is_small(call):
        return tvm.ir.Op.get("relax.matmul").get_attr("FLegalize")(bb, call)
    return relax.call_dps_packed("tvm_neuron.runtime.matmul", relax.Tuple(call.args), call.ty)


def _is_small(call: relax.Call) -> bool:
    sizes = [*call.ty.shape, call.args[0].ty.shape[-1]]
    return all(isinstance(size, tirx.IntImm) for size in sizes) and prod(map(int, sizes)) <= FEW_PRODUCTS


PRODUCTS = {"relax.matmul": _matmul}
"""For `relax.transform.LegalizeOps`."""
