"""Functions that no engine has, as expressions of those that one has; an entry of the table is all that one needs."""

from collections.abc import Callable, Sequence
from math import log, pi, sqrt

from tvm_neuron.schedule.expr import Apply, Expr, Num

_WHOLE_FROM = float(2**23)  # from here on every float32 is a whole number


def _call(op: str, *args: Expr | float) -> Apply:
    return Apply(op, tuple(Num(arg) if isinstance(arg, int | float) else arg for arg in args))


def add(x: Expr | float, y: Expr | float) -> Expr:
    """x + y."""
    return _call("add", x, y)


def sub(x: Expr | float, y: Expr | float) -> Expr:
    """x - y."""
    return _call("subtract", x, y)


def mul(x: Expr | float, y: Expr | float) -> Expr:
    """x * y."""
    return _call("multiply", x, y)


def div(x: Expr | float, y: Expr | float) -> Expr:
    """x / y."""
    return _call("divide", x, y)


def _unless_whole(x: Expr, rounded: Expr) -> Expr:
    """`rounded`, but numbers without a fraction (and infinities) as they are."""
    return _call("select", _call("is_ge", _call("abs", x), _WHOLE_FROM), x, rounded)


def _floor(x: Expr) -> Expr:
    return _unless_whole(x, sub(x, _call("mod", x, 1.0)))


def _ceil(x: Expr) -> Expr:
    return _unless_whole(x, add(x, _call("mod", mul(x, -1.0), 1.0)))


def _round(x: Expr) -> Expr:
    """floor(x + 0.5), less one where x lies in the middle and that is odd: half to even."""
    moved = add(x, 0.5)
    rest = _call("mod", moved, 1.0)
    up = sub(moved, rest)
    is_middle = _call("is_equal", rest, 0.0)
    return _unless_whole(x, sub(up, mul(is_middle, _call("mod", up, 2.0))))


def truncated(x: Expr) -> Expr:
    """x without its fraction."""
    size = _call("abs", x)
    return _unless_whole(x, mul(_call("sign", x), sub(size, _call("mod", size, 1.0))))


def clamped(x: Expr, low: float, high: float) -> Expr:
    """x within [low, high]."""
    return _call("min", _call("max", x, low), high)


def fmod(x: Expr, y: Expr) -> Expr:
    """The rest of x / y without its fraction; it has the sign of x."""
    return mul(_call("sign", x), _call("mod", _call("abs", x), _call("abs", y)))


def _asin(x: Expr) -> Expr:
    return _call("arctan", div(x, _call("sqrt", mul(sub(1.0, x), add(1.0, x)))))


def _atan2(y: Expr, x: Expr) -> Expr:
    """The half plane left of the y axis turned by half a circle; on the axis a quarter."""
    inside = _call("arctan", div(y, x))
    turned = add(inside, mul(pi, _sign_of(y)))
    upright = _call("select", _call("is_equal", y, 0.0), 0.0, mul(pi / 2, _sign_of(y)))
    left = _call("select", _call("is_lt", x, 0.0), turned, inside)
    return _call("select", _call("is_equal", x, 0.0), upright, left)


def _sign_of(x: Expr) -> Expr:
    """1 or -1, and 1 for zero."""
    return sub(mul(2.0, _call("is_ge", x, 0.0)), 1.0)


def _near_zero(x: Expr, below: float, odd: Sequence[float], elsewhere: Expr) -> Expr:
    """x * (1 + odd[0] * x**2 + odd[1] * x**4 ...) where |x| < `below`; `elsewhere` has few digits there.

    `below` is so small that the next term is less than half a unit of float32's last place.
    """
    square = mul(x, x)
    series: Expr | float = 0.0
    for factor in reversed(odd):
        series = mul(add(series, factor), square)
    return _call("select", _call("is_lt", _call("abs", x), below), mul(x, add(series, 1.0)), elsewhere)


def _asinh(x: Expr) -> Expr:
    half = mul(_call("abs", x), 0.5)  # as 2 * size, and the square of a large one, would be infinite
    root = _call("select", _call("is_lt", half, _WHOLE_FROM), _call("sqrt", add(mul(half, half), 0.25)), half)
    whole = mul(_call("sign", x), add(_call("log", add(half, root)), log(2)))
    return _near_zero(x, 0.25, (-1 / 6, 3 / 40, -15 / 336, 105 / 3456), whole)


def _acosh(x: Expr) -> Expr:
    """NaN for what is less than 1, as the first of the roots is."""
    half = mul(x, 0.5)
    root = mul(_call("sqrt", sub(half, 0.5)), _call("sqrt", add(half, 0.5)))
    return add(_call("log", add(half, root)), log(2))


def _atanh(x: Expr) -> Expr:
    whole = mul(0.5, _call("log", div(add(1.0, x), sub(1.0, x))))
    return _near_zero(x, 0.25, (1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11), whole)


def _log1p(x: Expr) -> Expr:
    """Twice the atanh of x / (2 + x)."""
    part = div(x, add(x, 2.0))
    half = _near_zero(part, 0.125, (1 / 3, 1 / 5, 1 / 7, 1 / 9), mul(_call("log", add(x, 1.0)), 0.5))
    return mul(half, 2.0)


def _half_exp(x: Expr) -> Expr:
    """exp(x) / 2, finite where exp(x) is not."""
    return _call("square", mul(_call("exp", mul(x, 0.5)), sqrt(0.5)))


def _sinh(x: Expr) -> Expr:
    whole = sub(_half_exp(x), _half_exp(mul(x, -1.0)))
    return _near_zero(x, 1.0, (1 / 6, 1 / 120, 1 / 5040, 1 / 362880), whole)


def _cosh(x: Expr) -> Expr:
    return add(_half_exp(x), _half_exp(mul(x, -1.0)))


def _cos(x: Expr) -> Expr:
    """1 - 2 * sin(x / 2)^2: halves are exact, x + pi/2 is rounded, by 2e-4 where x is 4,096."""
    return sub(1.0, _call("square", mul(_call("sin", mul(x, 0.5)), sqrt(2))))


DERIVED: dict[str, Callable[..., Expr]] = {
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "nearbyint": _round,
    "rint": _round,
    "trunc": truncated,
    "fmod": fmod,
    "truncmod": fmod,
    "cos": _cos,
    "tan": lambda x: div(_call("sin", x), _cos(x)),
    "atan": lambda x: _call("arctan", x),
    "asin": _asin,
    "acos": lambda x: sub(pi / 2, _asin(x)),
    "atan2": _atan2,
    "sinh": _sinh,
    "cosh": _cosh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "log2": lambda x: mul(_call("log", x), 1 / log(2)),
    "log10": lambda x: mul(_call("log", x), 1 / log(10)),
    "log1p": _log1p,
    "exp2": lambda x: _call("exp", mul(x, log(2))),
    "exp10": lambda x: _call("exp", mul(x, log(10))),
    "isnan": lambda x: _call("not", _call("is_le", x, float("inf"))),
    "isinf": lambda x: _call("is_equal", _call("abs", x), float("inf")),
    "isfinite": lambda x: _call("is_lt", _call("abs", x), float("inf")),
}
"""By the name of the intrinsic in TIR."""
