"""Products of matrices and convolutions on the CPU: the runtime's functions, which call NumPy's BLAS on all threads.

A BLAS chooses its kernels on the machine that it runs on, so a library that was compiled elsewhere is as fast. What is
small, of other dtypes, or sums over a few products only, as a depthwise convolution does, stays a loop.
"""

from math import prod

import tvm
from tvm import relax, tirx

FEW_PRODUCTS = 1 << 14
"""Loops take no longer for these than a call of the runtime's function in Python, about 10 us."""
SHORT_SUM = 16
"""A BLAS gains nothing on sums of fewer products."""


def _matmul(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    if not _is_of_floats(call) or _is_small(call):
        return tvm.ir.Op.get("relax.matmul").get_attr("FLegalize")(bb, call)
    return relax.call_dps_packed("tvm_neuron.runtime.matmul", relax.Tuple(call.args), call.ty)


def _convolution(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    attrs, (data, weight) = call.attrs, call.args
    rank = data.ty.ndim - 2
    spatial = "DHW"[-rank:]
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout)
    sizes = [*call.ty.shape, *weight.ty.shape] if _is_of_floats(call) and _has_shape(weight) else []
    is_taken = (
        layouts == (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
        and sizes
        and all(isinstance(size, tirx.IntImm) for size in sizes)
        and prod(map(int, [*weight.ty.shape][1:])) >= SHORT_SUM
        and int(weight.ty.shape[0]) // attrs.groups >= SHORT_SUM // 2
    )
    if not is_taken:
        return call.op.get_attr("FLegalize")(bb, call)
    numbers = (relax.ShapeExpr(list(values)) for values in (attrs.strides, attrs.dilation, attrs.padding))
    return relax.call_dps_packed("tvm_neuron.runtime.convolve", relax.Tuple([data, weight, *numbers]), call.ty)


def _has_shape(expr: relax.Expr) -> bool:
    return isinstance(expr.ty.shape, relax.ShapeExpr)


def _is_of_floats(call: relax.Call) -> bool:
    dtypes = {str(expr.ty.dtype) for expr in (call, *call.args)}
    return len(dtypes) == 1 and dtypes <= {"float32", "float64"} and _has_shape(call)


def _is_small(call: relax.Call) -> bool:
    sizes = [*call.ty.shape, call.args[0].ty.shape[-1]]
    return all(isinstance(size, tirx.IntImm) for size in sizes) and prod(map(int, sizes)) <= FEW_PRODUCTS


PRODUCTS = {"relax.matmul": _matmul} | dict.fromkeys(
    ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"), _convolution
)
"""For `relax.transform.LegalizeOps`."""
