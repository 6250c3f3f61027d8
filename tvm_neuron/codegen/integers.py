"""Integer arithmetic on engines that compute in float32: where it is exact, and what it then is."""

from collections.abc import Callable
from math import inf

from tvm_neuron.codegen.derived import clamped, fmod, mul, sub, truncated
from tvm_neuron.schedule.expr import INTEGER, Apply, Expr, Index, Load, Num, loads
from tvm_neuron.schedule.operations import BITWISE

_BITS = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "int32": 32, "int64": 64}
"""Of the dtypes that the engines compute with."""
TRUTHS = ("is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "and", "or", "not")
_COMPARISONS = TRUTHS[:6]
_DIVISIONS = ("divide", "floordiv", "truncmod", "floormod")
_MOST_DIVIDED = 2.0**16
_LOGIC = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "not_equal"}  # of single bits
_BOUNDED = (*TRUTHS, "max", "min")  # never larger than their operands
EXACT_TO = 2.0**24
_LARGEST_FLOAT = float(2**31 - 128)  # of those that fit into int32


def _digits(dtype: str) -> int:
    """The bits of a number of any integer dtype without its sign."""
    return int(dtype.lstrip("uint")) - (not dtype.startswith("u")) if dtype != "bool" else 1


def is_integer(dtype: str) -> bool:
    """Whether it is a dtype of whole numbers, booleans included."""
    return dtype in _BITS or dtype.startswith(("int", "uint"))


def arithmetic(op: str, dtype: str, left: Expr, right: Expr) -> Expr:
    """`left op right` of operands of an integer dtype, with the wrap of two's complement where the result may leave it.

    Marked as inexact where float32 does not hold every operand and result.
    """
    value = Apply(op, (left, right))
    if not any(True for _ in loads(value)):
        return inexact(op, left, right) if op == "divide" else value  # positions only
    if dtype not in _BITS:
        return inexact(op, left, right)
    if op in _DIVISIONS:
        return _divided(op, dtype, left, right)
    is_wide = max(map(bound, (left, right))) > EXACT_TO
    if is_wide and op in _COMPARISONS:
        return _compared(op, left, right)
    if is_wide and op in ("max", "min"):
        return chosen(_compared("is_gt" if op == "max" else "is_lt", left, right), left, right)
    if max(map(bound, (left, right, value))) > EXACT_TO:
        return inexact(op, left, right)
    return wrapped(value, dtype) if op not in _BOUNDED and bound(value) >= 2.0 ** _digits(dtype) else value


def _divided(op: str, dtype: str, left: Expr, right: Expr) -> Expr:
    """A quotient or rest of numbers of up to 16 bits, towards zero or down; a quotient without rest is exact."""
    if max(map(bound, (left, right))) > _MOST_DIVIDED:
        return inexact(op, left, right)
    rest = fmod(left, right) if op in ("divide", "truncmod") else Apply("mod", (left, right))
    return rest if op.endswith("mod") else wrapped(Apply("divide", (sub(left, rest), right)), dtype)


def _compared(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison of numbers that float32 may round."""
    if not all(map(_has_bits, (left, right))):
        return inexact(op, left, right)
    if min(map(bound, (left, right))) < EXACT_TO:
        return Apply(op, (left, right))  # rounding keeps the order to any number below 2^24
    (high, low), (other_high, other_low) = ((_bits(x, -(2**16)), _bits(x, 2**16 - 1)) for x in (left, right))
    return Apply(op, (sub(high, other_high), sub(other_low, low)))  # both of at most 17 digits


def _bits(value: Expr, mask: int) -> Expr:
    return Apply("bitwise_and", (value, Num(mask)))


def chosen(condition: Expr, on_true: Expr, on_false: Expr) -> Expr:
    """One of two whole numbers, which is copied bit for bit."""
    if not (_has_bits(on_true) and _has_bits(on_false)):
        return inexact("select", condition, on_true, on_false)
    return Apply("select", (condition, on_true, on_false))


def bitwise(op: str, dtype: str, left: Expr, right: Expr) -> Expr:
    """`left op right` on the bits of operands of an integer dtype.

    Marked as inexact where an operand is neither read as it is nor exact in float32, or a result has more than 32 bits.
    """
    value = Apply(op, (left, right))
    if not any(True for _ in loads(value)):
        return value
    if dtype == "bool":
        return Apply(_LOGIC[op], (left, right))
    is_long = dtype == "int64" and op == "logical_shift_left"
    if dtype not in _BITS or is_long or not all(map(_has_bits, (left, right))):
        return inexact(op, left, right)
    return _low_bits(value, dtype) if op == "logical_shift_left" and _BITS[dtype] < 32 else value


def inverted(dtype: str, value: Expr) -> Expr:
    """All bits of a number of an integer dtype turned around."""
    if dtype == "bool":
        return Apply("not", (value,))
    ones = 2 ** int(dtype.removeprefix("uint")) - 1 if dtype.startswith("u") else -1
    return bitwise("bitwise_xor", dtype, value, Num(ones))


def _has_bits(expr: Expr) -> bool:
    """Whether an engine can take the number's bits: it reads or makes them, or float32 holds it."""
    if isinstance(expr, Num):
        return -(2**31) <= expr.value < 2**31
    has_them = isinstance(expr, Load) or (isinstance(expr, Apply) and expr.op in (*BITWISE, "select"))
    return has_them or bound(expr) <= EXACT_TO


def _low_bits(value: Expr, dtype: str) -> Expr:
    """The lowest bits of an integer as one of a dtype of up to 16 bits."""
    rest = _bits(value, 2 ** _BITS[dtype] - 1)
    if dtype.startswith("u"):
        return rest
    sign = Num(2 ** (_BITS[dtype] - 1))
    return sub(Apply("bitwise_xor", (rest, sign)), sign)


def bound(expr: Expr, of_load: Callable[[Load], float] | None = None) -> float:
    """What no absolute value of a whole number exceeds; infinite where nothing is known. `of_load` knows of tensors."""

    def inner(part: Expr) -> float:
        return bound(part, of_load)

    match expr:
        case Num(value):
            return abs(value)
        case Index(axis):
            return axis.extent
        case Load() if of_load is not None:
            return of_load(expr)
        case Load(tensor, _):
            return 2.0 ** _digits(tensor.dtype) if is_integer(tensor.dtype) else inf
        case Apply("add" | "subtract", (left, right)):
            return inner(left) + inner(right)
        case Apply("multiply", (left, right)):
            return inner(left) * inner(right)
        case Apply("max" | "min", (left, right)):
            return max(inner(left), inner(right))
        case Apply("select", (_, left, right)):
            return max(inner(left), inner(right))
        case Apply("mod", (_, Num(value))):
            return abs(value)
        case Apply("bitwise_and", (_, Num(value))) if value >= 0:
            return value
        case Apply("arith_shift_right", (left, Num(value))) if value >= 0:
            return inner(left) / 2.0**value + 1
        case Apply("arith_shift_right", (left, _)):
            return inner(left)
        case Apply("bitwise_and" | "bitwise_or" | "bitwise_xor", (left, right)):
            return 2 * max(inner(left), inner(right))
        case Apply("abs", (of,)):
            return inner(of)
        case Apply(op, _) if op in TRUTHS or op == "sign":
            return 1.0
        case _:
            return inf


def inexact(op: str, *operands: Expr) -> Expr:
    """What float32 can't do exactly, and so no engine: it must be known at compile time, or no rule takes it."""
    return Apply(f"{INTEGER}{op}", operands)


def wrapped(value: Expr, dtype: str) -> Expr:
    """A whole number brought into the range of a dtype of up to 16 bits as two's complement does."""
    if dtype == "bool":
        return Apply("not_equal", (value, Num(0.0)))
    size, half = float(2 ** _BITS[dtype]), float(2 ** (_BITS[dtype] - 1))
    rest = Apply("mod", (value, Num(size)))  # exact, however large the value
    return rest if dtype.startswith("u") else sub(rest, mul(size, Apply("is_ge", (rest, Num(half)))))


def as_int32(value: Expr) -> Expr:
    """A float without its fraction, in the range of 32 bits."""
    return truncated(clamped(value, -float(2**31), _LARGEST_FLOAT))


def cast(inner: Expr, source: str, target: str) -> Expr:
    """The value in another dtype: integers wrap; floats lose their fraction, and wrap to 16 bits, saturate to more."""
    if not any(True for _ in loads(inner)):
        return Apply(f"cast.{target}", (inner,))  # of positions, which are known at compile time
    if target == "bool":
        return inner if source == "bool" else Apply("not_equal", (inner, Num(0.0)))
    if not is_integer(target) or source == "bool":
        return inner
    bits = _BITS.get(target, 64)
    if not is_integer(source):
        if bits <= 16:
            return wrapped(truncated(inner), target)
        return as_int32(inner)
    if target not in _BITS:
        return inexact(f"cast.{target}", inner)
    is_signed = target.startswith("u") and not source.startswith("u")
    fits = _digits(source) <= _digits(target) and not is_signed
    if fits or {source, target} == {"int32", "int64"}:
        return inner
    if bits > 16:
        return inexact(f"cast.{target}", inner)
    if bound(inner) <= EXACT_TO:
        return wrapped(inner, target)
    return _low_bits(inner, target) if _has_bits(inner) else inexact(f"cast.{target}", inner)
