"""Integer arithmetic on engines that compute in float32: where it is exact, and what it then is."""

from math import inf

from tvm_neuron.codegen.derived import clamped, mul, sub, truncated
from tvm_neuron.schedule.expr import INTEGER, Apply, Expr, Index, Load, Num, loads

_BITS = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "int32": 32, "int64": 64}
_LARGEST = {
    "bool": 1, "int8": 127, "uint8": 255, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1,
}  # fmt: skip
_TRUTHS = ("is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "and", "or", "not")
_BOUNDED = (*_TRUTHS, "max", "min")  # never larger than their operands
EXACT_TO = 2.0**24
_LARGEST_FLOAT = float(2**31 - 128)  # of those that fit into int32


def is_integer(dtype: str) -> bool:
    """Whether it is a dtype of whole numbers, booleans included."""
    return dtype in _BITS or dtype.startswith(("int", "uint"))


def arithmetic(op: str, dtype: str, left: Expr, right: Expr) -> Expr:
    """`left op right` of operands of an integer dtype, with the wrap of two's complement where the result may leave it.

    Marked as inexact where float32 does not hold every operand and result.
    """
    value = Apply(op, (left, right))
    if not any(True for _ in loads(value)):
        return value  # positions only
    if max(map(bound, (left, right, value))) > EXACT_TO:
        return inexact(op, left, right)
    return wrapped(value, dtype) if op not in _BOUNDED and bound(value) > _LARGEST.get(dtype, inf) else value


def bound(expr: Expr) -> float:
    """What no absolute value of a whole number exceeds; infinite where nothing is known."""
    match expr:
        case Num(value):
            return abs(value)
        case Index(axis):
            return axis.extent
        case Load(tensor, _):
            return float(_LARGEST[tensor.dtype] + 1) if tensor.dtype in _LARGEST else inf
        case Apply("add" | "subtract", (left, right)):
            return bound(left) + bound(right)
        case Apply("multiply", (left, right)):
            return bound(left) * bound(right)
        case Apply("max" | "min", (left, right)):
            return max(bound(left), bound(right))
        case Apply("select", (_, left, right)):
            return max(bound(left), bound(right))
        case Apply("mod", (_, Num(value))):
            return abs(value)
        case Apply(op, _) if op in _TRUTHS:
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
        return truncated(clamped(inner, -float(2**31), _LARGEST_FLOAT))
    fits = _BITS.get(source, 64) < bits or {source, target} == {"int32", "int64"} or source == target
    if fits and not (source == "int8" and target.startswith("u")):
        return inner
    if bound(inner) > EXACT_TO:
        return inexact(f"cast.{target}", inner)
    return wrapped(inner, target)
