"""ArgMax, ArgMin: the extreme, which elements are it, and the smallest of their positions."""

import numpy as np
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.decompose.shapes import has_exact_positions, is_float, static_shape


def positions_along(shape: tuple[int, ...], axis: int) -> relax.Expr:
    """0, 1, 2, ... along an axis, as float32 [1, ..., extent, ..., 1]."""
    extent = shape[axis]
    return relax.const(np.arange(extent).reshape([extent if d == axis else 1 for d in range(len(shape))]), "float32")


def smallest_key(places: relax.Expr, below: relax.Var, shape: tuple[int, ...], axis: int, block: Emitter) -> relax.Var:
    """The smallest of `places` where `below` is 0 rather than -1, with the axis kept; places are under the extent.

    With below = sign(x - max), which is 0 where x is the maximum (or where the difference is NaN, as that of two
    infinities is), that is the first position of the maximum.
    """
    if str(below.ty.dtype) != "float32":
        below = block.emit(relax.op.astype(below, "float32"))
    away = block.emit(relax.op.multiply(below, relax.const(float(shape[axis]), "float32")))
    return block.emit(relax.op.min(block.emit(relax.op.subtract(places, away)), axis, keepdims=True))


def _arg_extreme(call: relax.Call, block: Emitter, is_max: bool) -> relax.Expr | None:
    shape, axis = static_shape(call.args[0]), call.attrs.axis
    if shape is None or axis is None or not is_float(call.args[0]):
        return None
    axis = int(axis) % len(shape)
    if not has_exact_positions(shape, axis):
        return None
    data = call.args[0] if is_max else block.emit(relax.op.negative(call.args[0]))
    largest = block.emit(relax.op.max(data, axis, keepdims=True))
    below = block.emit(relax.op.sign(block.emit(relax.op.subtract(data, largest))))
    position = smallest_key(positions_along(shape, axis), below, shape, axis, block)
    if not call.attrs.keepdims:
        position = block.emit(relax.op.squeeze(position, [axis]))
    return block.emit(relax.op.astype(position, call.ty.dtype))


EXPANSIONS: dict[str, Expansion] = {
    "relax.argmax": lambda call, block: _arg_extreme(call, block, is_max=True),
    "relax.argmin": lambda call, block: _arg_extreme(call, block, is_max=False),
}
