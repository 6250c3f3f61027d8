"""affine: scales and shifts by constants are gathered, so that a batch norm costs nothing but its weights."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, rewrite
from tvm_neuron.schedule.kernel import ACCUMULATOR, ROOT, Contraction, Kernel
from tvm_neuron.schedule.operations import BITWISE
from tvm_neuron.schedule.tensor import Tensor

Array = NDArray[Any]


@dataclass(frozen=True)
class Scaled:
    """`inner * scale + shift`, both numbers or one for each channel (float64)."""

    inner: Expr
    scale: Array
    shift: Array

    def times(self, number: float) -> "Scaled":
        """All of it multiplied by a number."""
        return Scaled(self.inner, self.scale * number, self.shift * number)

    def is_near(self, other: "Scaled", relative: float) -> bool:
        """Whether it is the same but for relative errors of the constants."""
        if self.inner != other.inner:
            return False
        pairs = ((self.scale, other.scale), (self.shift, other.shift))
        return all(np.allclose(mine, others, rtol=relative, atol=0) for mine, others in pairs)


def gather_constants(expr: Expr, channel: Axis) -> Expr:
    """The expression with every run of scales and shifts by constants as one multiply and one add at most.

    Constants come out as Num or as a load of a vector over `channel`.
    """
    if isinstance(expr, Num):
        return expr
    known = channel_constant(expr, channel)
    if known is not None:
        return constant_expr(known, channel)
    if not isinstance(expr, Apply):
        return expr
    expr = Apply(expr.op, tuple(gather_constants(arg, channel) for arg in expr.args))
    return emit_scaled(as_scaled(expr, channel), channel)


def share_constants(expr: Expr) -> Expr:
    """The expression with one tensor for all constants of the same values, so that equal parts are equal."""
    first: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor is ACCUMULATOR or part.tensor.value is None:
            return part
        value = part.tensor.value
        return Load(first.setdefault((value.dtype.str, value.shape, value.tobytes()), part.tensor), part.indices)

    return rewrite(expr, leaf)


def as_scaled(expr: Expr, channel: Axis) -> Scaled:
    """The expression as a scaled and shifted inner one, by constants that float32 holds: one step may overflow, or lose
    all digits, where two do not, and then stays a step of its own.
    """
    with np.errstate(all="ignore"):
        found = _gathered(expr, channel)
    if found is not None and _is_held(found.scale) and _is_held(found.shift):
        return found
    return Scaled(expr, np.ones(()), np.zeros(()))


def _gathered(expr: Expr, channel: Axis) -> Scaled | None:
    if not isinstance(expr, Apply) or expr.op not in ("add", "subtract", "multiply", "divide"):
        return None
    left, right = expr.args
    a, b = channel_constant(left, channel), channel_constant(right, channel)
    if b is not None and a is None:
        x = as_scaled(left, channel)
        if expr.op == "add":
            return Scaled(x.inner, x.scale, x.shift + b)
        if expr.op == "subtract":
            return Scaled(x.inner, x.scale, x.shift - b)
        if expr.op == "multiply":
            return Scaled(x.inner, x.scale * b, x.shift * b)
        return Scaled(x.inner, x.scale / b, x.shift / b)
    if a is not None and b is None and expr.op != "divide":
        x = as_scaled(right, channel)
        if expr.op == "add":
            return Scaled(x.inner, x.scale, x.shift + a)
        if expr.op == "subtract":
            return Scaled(x.inner, -x.scale, a - x.shift)
        return Scaled(x.inner, x.scale * a, x.shift * a)
    return None


def _is_held(value: Array) -> bool:
    """Whether all numbers are 0 or within the range in which float32 has all its digits."""
    limits, size = np.finfo(np.float32), np.abs(value)
    return bool(np.all((size == 0) | ((size >= limits.smallest_normal) & (size <= limits.max))))


def channel_constant(expr: Expr, channel: Axis) -> Array | None:
    """The value of an expression that is constant but for the channel: a float64 number or vector; else None."""
    if not _is_known(expr) or any(axis is not channel and axis.extent > 1 for axis in axes_of(expr)):
        return None
    value = np.asarray(evaluate(expr, (channel,)), np.float64)
    return value.reshape(()) if value.size == 1 else value.reshape(channel.extent)


def _is_known(expr: Expr) -> bool:
    """Whether float32 constants give its value; those that operations on bits put together have more digits."""
    if isinstance(expr, Load):
        return expr.tensor is not ACCUMULATOR and expr.tensor.value is not None
    return not isinstance(expr, Apply) or (expr.op not in BITWISE and all(_is_known(arg) for arg in expr.args))


def constant_expr(value: Array, channel: Axis) -> Expr:
    """A number, or a vector over the channel as a load."""
    if value.ndim == 0 or np.all(value == value.flat[0]):
        return Num(float(value.flat[0]))
    tensor = Tensor("vector", value.shape, "float32", value=value.astype(np.float32))
    return Load(tensor, (Index(channel),))


def emit_scaled(parts: Scaled, channel: Axis) -> Expr:
    """The inverse of `as_scaled`, without multiplications by one and additions of zero."""
    expr = parts.inner
    if not np.all(parts.scale == 1):
        expr = Apply("multiply", (expr, constant_expr(np.asarray(parts.scale), channel)))
    if not np.all(parts.shift == 0):
        expr = Apply("add", (expr, constant_expr(np.asarray(parts.shift), channel)))
    return expr


def fold_scale(kernel: Kernel) -> Kernel:
    """A contraction with the scale of its result folded into its weights."""
    expr = share_constants(gather_constants(fold_positions(kernel.expr, kernel), kernel.channel))
    if not isinstance(kernel.root, Contraction):
        return replace(kernel, expr=expr)
    scale: list[Array] = []
    changed = _unscaled(expr, kernel.channel, scale)
    if len(scale) != 1 or _count_root(expr) != 1:
        return replace(kernel, expr=expr)
    weights = kernel.root.weights * scale[0].astype(np.float32)
    if np.isinf(weights).any():
        return replace(kernel, expr=expr)
    return replace(kernel, expr=changed, root=replace(kernel.root, weights=weights))


def _unscaled(expr: Expr, channel: Axis, scale: list[Array]) -> Expr:
    """The expression without constants of the channel that multiply the root; those are added to `scale`."""
    if not isinstance(expr, Apply):
        return expr
    if expr.op == "multiply" and expr.args[0] is ROOT:
        found = channel_constant(expr.args[1], channel)
        if found is not None:
            scale.append(found)
            return ROOT
    return Apply(expr.op, tuple(_unscaled(part, channel, scale) for part in expr.args))


def _count_root(expr: Expr) -> int:
    return sum(map(_count_root, expr.args)) if isinstance(expr, Apply) else int(expr is ROOT)


def fold_positions(expr: Expr, kernel: Kernel) -> Expr:
    """The expression with every part that is known at compile time, but changes along free axes, as one constant."""
    if isinstance(expr, Num) or (isinstance(expr, Load) and expr.tensor.value is None):
        return expr
    if _is_known(expr):
        if channel_constant(expr, kernel.channel) is not None:
            return expr
        axes = _axes(expr, kernel)
        value = np.ascontiguousarray(np.broadcast_to(evaluate(expr, axes), [axis.extent for axis in axes]))
        if np.all(value == value.flat[0]):
            return Num(float(value.flat[0]))
        constant = Tensor("positions", value.shape, "float32", value=value.astype(np.float32))
        return Load(constant, tuple(Index(axis) for axis in axes))
    if isinstance(expr, Apply) and expr.op == "divide" and _is_known(expr.args[1]):
        inverse = Apply("divide", (Num(1.0), expr.args[1]))
        if _is_held(evaluate(inverse, _axes(inverse, kernel))):  # engines multiply faster than they divide
            return Apply("multiply", (fold_positions(expr.args[0], kernel), fold_positions(inverse, kernel)))
    if isinstance(expr, Apply):
        return Apply(expr.op, tuple(fold_positions(arg, kernel) for arg in expr.args))
    return expr


def _axes(expr: Expr, kernel: Kernel) -> tuple[Axis, ...]:
    """The axes of the kernel along which the expression changes."""
    return tuple(axis for axis in (kernel.channel, *kernel.free) if axis in set(axes_of(expr)))
