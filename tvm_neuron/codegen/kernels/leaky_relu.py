"""use_maxima: leaky ReLU as the larger of a value and a multiple of it, which POOL computes in one instruction.

As the model has it, it is a choice between the two by a comparison: two instructions, and the multiple takes one more.
"""

from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.codegen.kernels.affine import Scaled, as_scaled, constant_expr
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Num, rewrite_operations
from tvm_neuron.schedule.kernel import Kernel

_NEAR = 1e-6  # relative: constants have been multiplied in float32


def use_maxima(kernel: Kernel) -> Kernel:
    """The kernel; a positive x or else x * slope, with slopes of at most 1 that are not 0, is max(x * slope, x)."""
    if is_integer(kernel.out.dtype):
        return kernel  # which may be too large for float32
    return replace(kernel, expr=rewrite_operations(kernel.expr, lambda expr: _as_maximum(expr, kernel.channel)))


def _as_maximum(expr: Apply, channel: Axis) -> Expr:
    match expr:
        case Apply("select", (Apply("is_lt" | "is_le", (Num(0), tested)), x, other)) if tested == x:
            slope = _slope(as_scaled(x, channel), as_scaled(other, channel), channel)
        case Apply("select", (Apply("is_gt" | "is_ge", (tested, Num(0))), x, other)) if tested == x:
            slope = _slope(as_scaled(x, channel), as_scaled(other, channel), channel)
        case _:
            return expr
    return expr if slope is None else Apply("max", (Apply("multiply", (x, slope)), x))


def _slope(x: Scaled, other: Scaled, channel: Axis) -> Expr | None:
    """What x is multiplied by to give the other, if that is at most 1; not 0, by which infinity would become NaN."""
    scale, shift, its_scale, its_shift = np.broadcast_arrays(x.scale, x.shift, other.scale, other.shift)
    is_scaled = scale != 0
    top, bottom = np.where(is_scaled, its_scale, its_shift), np.where(is_scaled, scale, shift)
    is_known = bottom != 0  # a channel of zeros may have any slope
    usual = np.median(top[is_known] / bottom[is_known]) if np.any(is_known) else 1.0
    slope = np.divide(top, bottom, out=np.full(bottom.shape, usual), where=is_known)
    if np.allclose(slope, usual, rtol=_NEAR, atol=0):
        slope = np.asarray(usual)
    multiple = Scaled(x.inner, x.scale * slope, x.shift * slope)
    is_multiple = other.is_near(multiple, _NEAR) and np.all(slope <= 1) and np.all(slope != 0)
    return constant_expr(slope, channel) if is_multiple else None
