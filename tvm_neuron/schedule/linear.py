"""Linear: an index as a sum of axes with whole coefficients, and the way there from div and mod by splitting axes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Num


@dataclass(frozen=True)
class Linear:
    """`const + sum(coefficient * axis)`."""

    const: int = 0
    terms: Mapping[Axis, int] = field(default_factory=dict)

    def __add__(self, other: "Linear") -> "Linear":
        merged = dict(self.terms)
        for axis, step in other.terms.items():
            merged[axis] = merged.get(axis, 0) + step
        return Linear(self.const + other.const, {axis: step for axis, step in merged.items() if step})

    def scaled(self, by: int) -> "Linear":
        """`by` times it."""
        return Linear(self.const * by, {axis: step * by for axis, step in self.terms.items()} if by else {})

    def replaced(self, axis: Axis, by: "Linear") -> "Linear":
        """It with `by` in the place of an axis."""
        rest = {other: step for other, step in self.terms.items() if other is not axis}
        return Linear(self.const, rest) + by.scaled(self.terms.get(axis, 0))

    @property
    def span(self) -> tuple[int, int]:
        """Smallest and largest value."""
        low = self.const + sum(min(0, step * (axis.extent - 1)) for axis, step in self.terms.items())
        high = self.const + sum(max(0, step * (axis.extent - 1)) for axis, step in self.terms.items())
        return low, high

    def index(self) -> Expr:
        """It as plain as can be, as rules look for it and expressions are compared."""
        return Index(*self.terms) if not self.const and [*self.terms.values()] == [1] else self.expr()

    def expr(self) -> Expr:
        """It as an expression."""
        total: Expr = Num(self.const)
        for axis, step in self.terms.items():
            total = Apply("add", (total, Apply("multiply", (Index(axis), Num(step)))))
        return total


def counts(terms: Mapping[Axis, int]) -> int:
    """How far the axes count in mixed radix; 0 if they don't."""
    size = 1
    for axis, step in sorted(terms.items(), key=lambda term: term[1]):
        if step != size:
            return 0
        size *= axis.extent
    return size


class NotLinearError(Exception):
    """The index is no sum of axes; it must be enumerated."""


class CutAxisError(NotLinearError):
    """The index would become linear by splitting `axis`, were it not for the part of it from `at` on."""

    def __init__(self, axis: Axis, at: int) -> None:
        super().__init__(axis, at)
        self.axis = axis
        self.at = at


class SplitAxisError(Exception):
    """The index becomes linear once `axis` is split into `axis // inner` and `axis % inner`."""

    def __init__(self, axis: Axis, inner: int) -> None:
        super().__init__(axis, inner)
        self.axis = axis
        self.inner = inner


def linear(expr: Expr) -> Linear:
    """The expression as a sum of axes.

    Raises:
        SplitAxisError: it would be one if an axis were split.
        NotLinearError: it is none.
    """
    if isinstance(expr, Index):  # most are; asked for before patterns, which take several times as long
        return Linear(0, {expr.axis: 1} if expr.axis.extent > 1 else {})
    if isinstance(expr, Num):
        return Linear(int(expr.value))
    if not isinstance(expr, Apply):
        raise NotLinearError(expr)
    op, args = expr.op, expr.args
    if op == "add":
        return linear(args[0]) + linear(args[1])
    if op == "subtract":
        return linear(args[0]) + linear(args[1]).scaled(-1)
    if op == "multiply":
        left, right = linear(args[0]), linear(args[1])
        if not left.terms:
            return right.scaled(left.const)
        if not right.terms:
            return left.scaled(right.const)
    elif op in ("floordiv", "floormod") and isinstance(args[1], Num):
        quotient, rest = _divide(linear(args[0]), int(args[1].value))
        return quotient if op == "floordiv" else rest
    elif op in ("min", "max"):
        left, right = linear(args[0]), linear(args[1])
        low, high = (left + right.scaled(-1)).span
        if high <= 0:
            return left if op == "min" else right
        if low >= 0:
            return right if op == "min" else left
    raise NotLinearError(expr)


def _divide(value: Linear, divisor: int) -> tuple[Linear, Linear]:
    whole = Linear(0, {axis: step // divisor for axis, step in value.terms.items() if step % divisor == 0})
    rest = Linear(value.const, {axis: step for axis, step in value.terms.items() if step % divisor})
    low, high = rest.span
    if low // divisor == high // divisor:
        shift = low // divisor
        return whole + Linear(shift), rest + Linear(-shift * divisor)
    for axis, step in rest.terms.items():
        inner = divisor // step if step > 0 and divisor % step == 0 else 0
        if 1 < inner < axis.extent:
            if axis.extent % inner:
                raise CutAxisError(axis, axis.extent // inner * inner)
            raise SplitAxisError(axis, inner)
    raise NotLinearError(f"{value} // {divisor}")
