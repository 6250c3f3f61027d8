"""keep_bits: integer constants that float32 would round, in halves that it holds, which the core puts together.

Constants come to the engines as float32, and most passes over kernels compute with them as such.
"""

from dataclasses import replace

import numpy as np

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, loads
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.operations import BITWISE
from tvm_neuron.schedule.tensor import Tensor

TOO_LONG = "it takes a constant of more than 32 bits, which no engine has"


def keep_bits(kernel: Kernel) -> Kernel:
    """The kernel; what it knows of the operands of operations on bits, and of whole numbers that it copies, is exact.

    Raises:
        UnschedulableError: a constant has more than 32 bits.
    """
    expr = _kept(kernel.expr, kernel, is_integer(kernel.out.dtype))
    if isinstance(expr, Num) and is_integer(kernel.out.dtype) and float(np.float32(expr.value)) != expr.value:
        axes = (kernel.channel,)  # it is filled with float32, which the number is not
        expr = _halves(np.full([axis.extent for axis in axes], int(expr.value)), axes)
    return replace(kernel, expr=expr)


def _kept(expr: Expr, kernel: Kernel, has_bits: bool) -> Expr:
    """The expression, whose bits are taken by what reads it, or not."""
    has_bits = has_bits or (isinstance(expr, Apply) and expr.op in BITWISE)
    is_known = all(load.tensor.value is not None for load in loads(expr))
    if has_bits and is_known and not isinstance(expr, Num):
        return _constant(expr, kernel)
    if not isinstance(expr, Apply):
        return expr
    takes = [expr.op in BITWISE or (expr.op == "select" and place > 0) for place in range(len(expr.args))]
    return Apply(expr.op, tuple(_kept(arg, kernel, bits) for arg, bits in zip(expr.args, takes, strict=True)))


def _constant(expr: Expr, kernel: Kernel) -> Expr:
    axes = tuple(axis for axis in (kernel.channel, *kernel.free) if axis in set(axes_of(expr)))
    value = np.broadcast_to(evaluate(expr, axes), [axis.extent for axis in axes])
    if value.dtype.kind not in "iu":
        return expr  # of a choice between floats, or a whole number that float32 holds
    value = value.astype(np.int64)
    limits = np.iinfo(np.int32)
    if value.min() < limits.min or value.max() > limits.max:
        raise UnschedulableError(f"{kernel.origins[0]}: {TOO_LONG}", kernel.origins[0].name, TOO_LONG)
    if np.all(value == value.flat[0]):
        return Num(int(value.flat[0]))
    if np.array_equal(value.astype(np.float32), value):
        return _load(value, axes)
    return _halves(value, axes)


def _halves(value: np.ndarray, axes: tuple[Axis, ...]) -> Apply:
    high = Apply("logical_shift_left", (_load(value >> 16, axes), Num(16)))
    return Apply("bitwise_or", (high, _load(value & 0xFFFF, axes)))


def _load(value: np.ndarray, axes: tuple[Axis, ...]) -> Load:
    return Load(Tensor("constant", value.shape, "int32", value=value.astype(np.int32)), tuple(map(Index, axes)))
