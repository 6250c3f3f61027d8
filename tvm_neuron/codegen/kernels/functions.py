"""use_functions: what one instruction of ACT computes, where the model writes it as several operators."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose, pi, prod, sqrt

import numpy as np

from tvm_neuron.codegen.kernels.affine import Scaled, as_scaled, emit_scaled
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Num, rewrite_operations
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.roles import factors

_GELU_SIGMOID = 1.702  # of GELU's approximation by sigmoid
_SOFTPLUS_IS_X = 16  # from where on the rest, exp(-x), is less than half a digit of float32
_CUBIC = 0.044715  # of GELU's approximation by tanh
_NEAR = 1e-5  # relative: models hold such numbers in float32, or rounded to a few digits


def use_functions(kernel: Kernel) -> Kernel:
    """The kernel with GELU (exact, by tanh, by sigmoid), SiLU, softplus, Mish, squares, 1 / sqrt as one function each.

    HardSwish takes two instructions.
    """
    return replace(kernel, expr=rewrite_operations(kernel.expr, lambda expr: _as_function(expr, kernel.channel)))


def _as_function(expr: Apply, channel: Axis) -> Expr:
    match expr:
        case Apply("log", (gate,)) if (found := _as_gate(gate)) and (found.function, found.factor) == ("exp", 1):
            return Apply("softplus", (found.inside,))
        case Apply("add", (Apply("max", (x, Num(0))), Apply("softplus", (below,)))) if _is_minus_size(below, x):
            return Apply("softplus", (x,))  # ACT's holds for numbers of any size
        case Apply("select", (Apply("is_lt", (Num(limit), x)), other, Apply("softplus", (inside,)))) if (
            limit >= _SOFTPLUS_IS_X and x == other == inside
        ):
            return Apply("softplus", (x,))
        case Apply("pow", (x, Num(2.0))):  # a square is a function of ACT, which also adds up what it makes
            return Apply("multiply", (x, x))
        case Apply("divide", (Num(1.0), Apply("sqrt", (x,)))):
            return Apply("rsqrt", (x,))
    return _function(expr, channel) if expr.op == "multiply" else expr


def _is_minus_size(expr: Expr, x: Expr) -> bool:
    match expr:
        case Apply("multiply", (Apply("abs", (inner,)), Num(-1))):
            return inner == x
    return False


def _function(product: Expr, channel: Axis) -> Expr:
    """The product, which may be a function of one of its factors."""
    numbers = [part.value for part in factors(product) if isinstance(part, Num)]
    others = [part for part in factors(product) if not isinstance(part, Num)]
    if len(others) != 2:
        return product
    for x, gate in (others, reversed(others)):
        if found := _as_gate(gate):
            whole = as_scaled(x, channel).times(2 * prod(numbers) * found.factor)
            if found.function == "erf" and as_scaled(found.inside, channel).is_near(whole.times(sqrt(0.5)), _NEAR):
                return Apply("gelu", (emit_scaled(whole, channel),))
            if found.function == "tanh" and _is_of_tanh(found.inside, whole, channel):
                return Apply("gelu_tanh", (emit_scaled(whole, channel),))
        if not numbers and gate == Apply("sigmoid", (x,)):
            return Apply("silu", (x,))
        if not numbers and _is_of_sigmoid(gate, as_scaled(x, channel), channel):
            return Apply("gelu_sigmoid", (x,))
        if not numbers and gate == Apply("tanh", (Apply("softplus", (x,)),)):
            return Apply("mish", (x,))
        ramp = _as_ramp(gate, prod(numbers), channel)
        if ramp is not None:
            return Apply("multiply", (x, ramp))
    return product


def _as_ramp(gate: Expr, factor: float, channel: Axis) -> Expr | None:
    """min(max(y * factor, 0), most * factor), if the gate is y between 0 and most, as that of HardSwish.

    ACT does the inner step in one instruction with scale and shift, POOL the other one while it multiplies by the gate.
    """
    match gate:
        case Apply("max", (Apply("min", (inner, Num(most))), Num(0))) if most >= 0 and factor > 0:
            pass
        case Apply("min", (Apply("max", (inner, Num(0))), Num(most))) if most >= 0 and factor > 0:
            pass
        case _:
            return None
    scaled = emit_scaled(as_scaled(inner, channel).times(factor), channel)
    return Apply("min", (Apply("max", (scaled, Num(0.0))), Num(most * factor)))


@dataclass(frozen=True)
class _Gate:
    """factor * (1 + function(inside)); a bias in x has been multiplied by its factor."""

    function: str
    inside: Expr
    factor: float


def _as_gate(gate: Expr) -> _Gate | None:
    """What the gate is, if it is of that form."""
    match gate:
        case Apply("add", (value, Num(number))) | Apply("add", (Num(number), value)):
            pass
        case _:
            return None
    match value:
        case Apply("multiply", (Apply(function, (inside,)), Num(factor))) if isclose(factor, number, rel_tol=_NEAR):
            return _Gate(function, inside, factor)
        case Apply(function, (inside,)) if number == 1:
            return _Gate(function, inside, 1.0)
    return None


def _is_of_tanh(inside: Expr, x: Scaled, channel: Axis) -> bool:
    """Whether it is sqrt(2 / pi) * (x + 0.044715 * x^3), or the same with x in front: x * (1 + 0.044715 * x * x)."""
    match inside:
        case Apply("multiply", (Apply("add", (left, right)), Num(number))) if isclose(
            number, sqrt(2 / pi), rel_tol=_NEAR
        ):
            for base, cubic in ((left, right), (right, left)):
                if _is_scaled(cubic, _CUBIC, [Apply("pow", (base, Num(3.0)))], [base, base, base]):
                    return as_scaled(base, channel).is_near(x, _NEAR)
    parts = list(factors(inside))
    for part in parts:
        match part:
            case Apply("add", (square, Num(1.0))):
                others = [_times(other, x, channel) for other in parts if other is not part]
                squared = [_times(other, x, channel) for other in factors(square)]
                if _are(others, 1, sqrt(2 / pi)) and _are(squared, 2, _CUBIC):
                    return True
    return False


def _times(part: Expr, x: Scaled, channel: Axis) -> tuple[int, float] | None:
    """Which power of x the part is, 0 or 1, and by what it is multiplied; None if it is neither."""
    if isinstance(part, Num):
        return 0, float(part.value)
    found = as_scaled(part, channel)
    if found.inner != x.inner or not x.scale.any():
        return None
    place = int(np.abs(x.scale).argmax())
    ratio = float(np.broadcast_to(found.scale, x.scale.shape).flat[place] / x.scale.flat[place])
    return (1, ratio) if found.is_near(x.times(ratio), _NEAR) else None


def _are(parts: Sequence[tuple[int, float] | None], power: int, number: float) -> bool:
    """Whether their product is `number` times that power of x."""
    known = [part for part in parts if part is not None]
    is_power = len(known) == len(parts) and sum(of for of, _ in known) == power
    return is_power and isclose(prod(factor for _, factor in known), number, rel_tol=_NEAR)


def _is_of_sigmoid(gate: Expr, x: Scaled, channel: Axis) -> bool:
    """Whether it is sigmoid(1.702 * x)."""
    match gate:
        case Apply("sigmoid", (inside,)):
            return as_scaled(inside, channel).is_near(x.times(_GELU_SIGMOID), _NEAR)
    return False


def _is_scaled(expr: Expr, number: float, *products: list[Expr]) -> bool:
    """Whether it is `number` times one of the products of these factors."""
    parts = list(factors(expr))
    numbers = [part.value for part in parts if isinstance(part, Num)]
    return isclose(prod(numbers), number, rel_tol=_NEAR) and [p for p in parts if not isinstance(p, Num)] in products
