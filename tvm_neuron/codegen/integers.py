"""Integer arithmetic on engines that compute in float32: where it is exact, and what it then is."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf, isfinite, prod

from tvm_neuron.codegen.derived import clamped, fmod, mul, sub, truncated
from tvm_neuron.partition.spans import Span
from tvm_neuron.schedule.expr import INTEGER, Apply, Expr, Index, Load, Num, loads
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.operations import BITWISE

_BITS = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "int32": 32, "int64": 64}
"""Of the dtypes that the engines compute with."""
TRUTHS = ("is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "and", "or", "not")
_COMPARISONS = TRUTHS[:6]
_DIVISIONS = ("divide", "floordiv", "truncmod", "floormod")
_MOST_DIVIDED = 2.0**16
_LOGIC = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "not_equal"}  # of single bits
_BOUNDED = (*TRUTHS, "max", "min")  # never larger than their operands
_WHOLE = ("add", "subtract", "multiply", "max", "min", "abs")  # of whole numbers a whole one
EXACT_TO = 2.0**24
UNKNOWN: Span = (-inf, inf)
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
    return value if op in _BOUNDED or _fits(value, dtype) else wrapped(value, dtype)


def _fits(value: Expr, dtype: str) -> bool:
    return joined(span(value), limits(dtype)) == limits(dtype)


def _divided(op: str, dtype: str, left: Expr, right: Expr) -> Expr:
    """A quotient or rest of numbers of up to 16 bits, towards zero or down; a quotient without rest is exact."""
    if max(map(bound, (left, right))) > _MOST_DIVIDED:
        return inexact(op, left, right)
    rest = fmod(left, right) if op in ("divide", "truncmod") else Apply("mod", (left, right))
    if op.endswith("mod"):
        return rest
    quotient = Apply("divide", (sub(left, rest), right))
    return quotient if bound(left) <= limits(dtype)[1] else wrapped(quotient, dtype)


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


def bound(expr: Expr) -> float:
    """What no absolute value of a whole number exceeds; infinite where nothing is known."""
    low, high = span(expr)
    return max(-low, high)


def span(expr: Expr) -> Span:
    """Between which numbers a whole number lies; infinite ones where nothing is known."""
    match expr:
        case Num(value):
            return value, value
        case Index(axis):
            return 0.0, axis.extent
        case Load(tensor, _):
            return tensor.span or limits(tensor.dtype)
        case Apply("select", (Apply("is_gt" | "is_lt" as op, sides), *either)) if list(sides) == either:
            return span(Apply("max" if op == "is_gt" else "min", sides))
        case Apply("select", (_, left, right)):
            return joined(span(left), span(right))
        case Apply("mod", (_, by)):
            return joined((0.0, 0.0), span(by))
        case Apply("bitwise_and", (_, Num(value))) if value >= 0:
            return 0.0, value
        case Apply(op, _) if op in TRUTHS:
            return 0.0, 1.0
        case Apply("sign", _):
            return -1.0, 1.0
        case Apply(op, args) if op in _SPANS:
            spans = [span(arg) for arg in args]
            return _SPANS[op](*spans) if all(isfinite(end) for each in spans for end in each) else UNKNOWN
        case _:
            return UNKNOWN


def joined(left: Span, right: Span) -> Span:
    """The span of what lies in either."""
    return min(left[0], right[0]), max(left[1], right[1])


def limits(dtype: str) -> Span:
    """The least and the greatest number of a dtype; of floats infinite ones."""
    if not is_integer(dtype):
        return UNKNOWN
    end = 2.0 ** _digits(dtype)
    return 0.0 if dtype == "bool" or dtype.startswith("u") else -end, end - 1


def _product(left: Span, right: Span) -> Span:
    corners = [one * other for one in left for other in right]
    return min(corners), max(corners)


def _quotient(left: Span, right: Span) -> Span:
    if right[1] > -1 and right[0] < 1:
        return UNKNOWN
    corners = [one / other for one in left for other in right]
    return min(corners), max(corners)


def _of_bits(left: Span, right: Span) -> Span:
    most = 2 * max(*map(abs, left), *map(abs, right))
    return 0.0 if min(left[0], right[0]) >= 0 else -most, most


def _shifted(value: Span, by: Span) -> Span:
    """Shifts by an unknown number bring it towards zero, or -1."""
    if by[0] == by[1] >= 0:
        return value[0] // 2 ** by[0], value[1] // 2 ** by[0]
    return min(value[0], 0.0), max(value[1], 0.0)


_SPANS: dict[str, Callable[..., Span]] = {
    "add": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "subtract": lambda left, right: (left[0] - right[1], left[1] - right[0]),
    "multiply": _product,
    "divide": _quotient,
    "max": lambda left, right: (max(left[0], right[0]), max(left[1], right[1])),
    "min": lambda left, right: (min(left[0], right[0]), min(left[1], right[1])),
    "abs": lambda of: (0.0, max(-of[0], of[1])),
    "arith_shift_right": _shifted,
    "bitwise_and": _of_bits,
    "bitwise_or": _of_bits,
    "bitwise_xor": _of_bits,
}


def is_exact(expr: Expr) -> bool:
    """Whether it is a whole number that float32 holds, as is all that it is made from, but for what only decides."""
    match expr:
        case Num(value):
            is_whole = float(value).is_integer()
        case Apply("select", (_, *either)):
            return all(map(is_exact, either))
        case Apply(op, _) if op in TRUTHS or op == "sign":
            return True
        case Apply(op, args):
            is_whole = op in _WHOLE and all(map(is_exact, args))
        case _:
            is_whole = True
    return is_whole and bound(expr) <= EXACT_TO


def combines_exactly(combine: str, dtype: str, term: Expr, count: int) -> bool:
    """Whether float32 holds every value on the way to what `count` terms of an integer dtype combine to."""
    if combine in ("max", "min"):
        return bound(term) <= EXACT_TO
    is_sum = combine == "add" and isinstance(term, Load)  # products go to the PE array, which may round their factors
    return is_sum and count * bound(term) <= min(EXACT_TO, limits(dtype)[1])


def result_span(blocks: Sequence[Block]) -> Span | None:
    """Between which numbers all lies that blocks write into one tensor; None where no more is known than its dtype."""
    spans = [_written(block) for block in blocks]
    known = [found for found in spans if found]
    return reduce(joined, known) if len(known) == len(spans) else None


def _written(block: Block) -> Span | None:
    dtype = block.output.dtype
    has_start = isfinite(block.init)  # else any term replaces it
    is_known = block.combine != "multiply" and (is_exact(Num(block.init)) or not has_start)
    if not is_known or block.output in block.sources():
        return None
    low, high = span(block.expr)
    if block.combine == "add":
        count = prod(axis.extent for axis in block.reduction)
        low, high = block.init + count * low, block.init + count * high
    elif block.combine and has_start:
        low, high = joined((low, high), (block.init, block.init))
    if is_integer(dtype):
        least, most = limits(dtype)
        found = max(low, least), min(high, most)
        return None if found == (least, most) else found
    is_held = dtype == "float32" and max(-low, high) <= EXACT_TO and is_exact(block.expr)
    return (low, high) if is_held else None


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
        whole = inner if is_exact(inner) else truncated(inner) if bits <= 16 else as_int32(inner)
        return whole if bits > 16 or _fits(whole, target) else wrapped(whole, target)
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
