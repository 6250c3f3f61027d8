"""Cumulative sums: products with a triangular matrix of ones, which the PE array makes in one go.

As in any product, an infinity or NaN in the data reaches every sum along its axis (0 * inf is NaN).
"""

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
    matrix = np.triu(np.ones((extent, extent)), int(bool(call.attrs.exclusive)))
    order = [*(d for d in range(len(shape)) if d != axis), axis]
    data = call.args[0] if axis == len(shape) - 1 else block.emit(relax.op.permute_dims(call.args[0], order))
    product = block.emit(relax.op.matmul(data, relax.const(matrix, str(call.ty.dtype))))
    back = [order.index(d) for d in range(len(shape))]
    return product if axis == len(shape) - 1 else block.emit(relax.op.permute_dims(product, back))


def _widely_summed(call: relax.Call, block: Emitter) -> relax.Expr | None:
    """The sums in float32 where TVM's kernel would add up in 16 bits."""
    dtype = str(call.ty.dtype)
    if dtype not in ("float16", "bfloat16"):
        return None
    wide = block.emit(relax.op.astype(call.args[0], "float32"))
    sums = block.emit(relax.op.cumsum(wide, int(call.attrs.axis), exclusive=bool(call.attrs.exclusive)))
    return block.emit(relax.op.astype(sums, dtype))


EXPANSIONS: dict[str, Expansion] = {"relax.cumsum": _cumsum}
