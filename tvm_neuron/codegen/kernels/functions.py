"""use_functions: what one instruction of ACT computes, where the model writes it as several operators."""

from dataclasses import replace
from math import isclose, pi, prod, sqrt

from tvm_neuron.codegen.kernels.affine import Scaled, as_scaled, emit_scaled
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Num, rewrite_operations
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.roles import factors

_CUBIC = 0.044715  # of GELU's approximation by tanh
_NEAR = 1e-5  # relative: models hold such numbers in float32, or rounded to a few digits


def use_functions(kernel: Kernel) -> Kernel:
    """The kernel with GELU (exact or by tanh), SiLU, softplus, Mish, squares and 1 / sqrt as one function each.

    HardSwish takes two instructions.
    """
    return replace(kernel, expr=rewrite_operations(kernel.expr, lambda expr: _as_function(expr, kernel.channel)))


def _as_function(expr: Apply, channel: Axis) -> Expr:
    match expr:
        case Apply("log", (gate,)) if (inside := _after_one(gate, "exp")) is not None:
            return Apply("softplus", (inside,))
        case Apply("pow", (x, Num(2.0))):  # a square is a function of ACT, which also adds up what it makes
            return Apply("multiply", (x, x))
        case Apply("divide", (Num(1.0), Apply("sqrt", (x,)))):
            return Apply("rsqrt", (x,))
    return _function(expr, channel) if expr.op == "multiply" else expr


def _function(product: Expr, channel: Axis) -> Expr:
    """The product, which may be a function of one of its factors."""
    numbers = [part.value for part in factors(product) if isinstance(part, Num)]
    others = [part for part in factors(product) if not isinstance(part, Num)]
    if len(others) != 2:
        return product
    for x, gate in (others, reversed(others)):
        whole = as_scaled(x, channel).times(2 * prod(numbers))
        if _is_erf_gate(whole, gate, channel):
            return Apply("gelu", (emit_scaled(whole, channel),))
        inside = _inside_tanh_gate(gate)
        if inside is not None and as_scaled(inside, channel).is_near(whole, _NEAR):
            return Apply("gelu_tanh", (inside,))
        if not numbers and gate == Apply("sigmoid", (x,)):
            return Apply("silu", (x,))
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


def _is_erf_gate(x: Scaled, gate: Expr, channel: Axis) -> bool:
    """1 + erf(x / sqrt(2)); a bias in x has been multiplied by its factor."""
    inside = _after_one(gate, "erf")
    return inside is not None and as_scaled(inside, channel).is_near(x.times(sqrt(0.5)), _NEAR)


def _inside_tanh_gate(gate: Expr) -> Expr | None:
    """x, if the gate is 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))."""
    match _after_one(gate, "tanh"):
        case Apply("multiply", (Apply("add", (left, right)), Num(number))) if isclose(
            number, sqrt(2 / pi), rel_tol=_NEAR
        ):
            for x, cubic in ((left, right), (right, left)):
                if _is_scaled(cubic, _CUBIC, [Apply("pow", (x, Num(3.0)))], [x, x, x]):
                    return x
    return None


def _after_one(gate: Expr, function: str) -> Expr | None:
    """y, if the gate is 1 + function(y)."""
    match gate:
        case Apply("add", (Apply(op, (inner,)), Num(1.0))) | Apply("add", (Num(1.0), Apply(op, (inner,)))):
            return inner if op == function else None
    return None


def _is_scaled(expr: Expr, number: float, *products: list[Expr]) -> bool:
    """Whether it is `number` times one of the products of these factors."""
    parts = list(factors(expr))
    numbers = [part.value for part in parts if isinstance(part, Num)]
    return isclose(prod(numbers), number, rel_tol=_NEAR) and [p for p in parts if not isinstance(p, Num)] in products
