"""Cumulative sums: products with a triangular matrix of ones, which the PE array makes in one go.

As in any product, an infinity or NaN in the data reaches every sum along its axis (0 * inf is NaN).
"""

from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.decompose.shapes import is_float, static_shape

MAX_EXTENT = 2048
"""The matrix grows with the square of the axis: 8 MB of bfloat16 at this extent."""


def _cumsum(call: relax.Call, block: Emitter) -> relax.Expr | None:
    """y[..., j] = sum of x[..., k] over k <= j (k < j if exclusive) = x @ ones[k <= j]."""
    shape, axis = static_shape(call.args[0]), call.attrs.axis
    if shape is None or axis is None or not is_float(call) or not is_float(call.args[0]):
        return None
    axis = int(axis) % len(shape)
    extent = shape[axis]
    if extent > MAX_EXTENT:
        return _widely_summed(call, block)
    return summed(call.args[0], axis, bool(call.attrs.exclusive), False, block.emit)


def summed(
    data: relax.Expr, axis: int, is_exclusive: bool, is_reverse: bool, emit: Callable[[relax.Expr], relax.Expr]
) -> relax.Expr:
    """The sums of floats from the start of an axis (its end, reverse) up to each element, which exclusive ones lack."""
    shape, dtype = [int(extent) for extent in data.ty.shape], str(data.ty.dtype)
    ones = np.ones((shape[axis], shape[axis]))
    matrix = np.tril(ones, -int(is_exclusive)) if is_reverse else np.triu(ones, int(is_exclusive))
    weights = relax.const(matrix, dtype)
    if axis == len(shape) - 1:
        return emit(relax.op.matmul(data, weights))
    order = [*(d for d in range(len(shape)) if d != axis), axis]
    product = emit(relax.op.matmul(emit(relax.op.permute_dims(data, order)), weights))
    return emit(relax.op.permute_dims(product, [order.index(d) for d in range(len(shape))]))


def _widely_summed(call: relax.Call, block: Emitter) -> relax.Expr | None:
    """The sums in float32 where TVM's kernel would add up in 16 bits."""
    dtype = str(call.ty.dtype)
    if dtype not in ("float16", "bfloat16"):
        return None
    wide = block.emit(relax.op.astype(call.args[0], "float32"))
    sums = block.emit(relax.op.cumsum(wide, int(call.attrs.axis), exclusive=bool(call.attrs.exclusive)))
    return block.emit(relax.op.astype(sums, dtype))


EXPANSIONS: dict[str, Expansion] = {"relax.cumsum": _cumsum}
