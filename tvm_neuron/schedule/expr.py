"""Scalar and index expressions as plain values: what a kernel computes at one point of its iteration space."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True, eq=False, slots=True)
class Axis:
    """One loop of a block: it runs over [0, extent). Axes are told apart by identity."""

    name: str
    extent: int
    is_reduction: bool = False

    def __repr__(self) -> str:
        return f"{self.name}:{self.extent}{'r' if self.is_reduction else ''}"


@dataclass(frozen=True, slots=True)
class Num:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Index:
    """The value of an axis."""

    axis: Axis


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a tensor."""

    tensor: Tensor
    indices: tuple["Expr", ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation; `op` is an ALU operation, a function of ACT, or one of floordiv, floormod, select, and, or, not."""

    op: str
    args: tuple["Expr", ...]


INTEGER = "int."
"""In front of an operation: on whole numbers that float32 does not hold exactly, so that no engine computes it."""

GATHER = "gather."
"""In front of dimensions: the data at positions along them as one; both are operands, known at run time."""

SCAN = "scan"
"""Of (factor, term, initial, at, counted): what a recurrence is at the place `at` of an axis, as a block adds it up
over the axis `counted`: factor * (what it is one place before) + term, after `initial`. Each is a number or a load."""

Expr = Num | Index | Load | Apply


def rewrite(expr: Expr, leaf: Callable[[Num | Index | Load], Expr]) -> Expr:
    """The expression with every leaf replaced; the indices of loads are rewritten first."""
    if isinstance(expr, Apply):
        return Apply(expr.op, tuple(rewrite(arg, leaf) for arg in expr.args))
    if isinstance(expr, Load) and expr.indices:
        return leaf(Load(expr.tensor, tuple(rewrite(index, leaf) for index in expr.indices)))
    return leaf(expr)


def rewrite_operations(expr: Expr, change: Callable[[Apply], Expr]) -> Expr:
    """The expression with every operation replaced by what `change` makes of it, the innermost first."""
    if not isinstance(expr, Apply):
        return expr
    return change(Apply(expr.op, tuple(rewrite_operations(arg, change) for arg in expr.args)))


def replace_axes(expr: Expr, by: Mapping[Axis, Expr]) -> Expr:
    """The expression with axes replaced by expressions."""
    return rewrite(expr, lambda leaf: by.get(leaf.axis, leaf) if isinstance(leaf, Index) else leaf)


def loads(expr: Expr) -> Iterator[Load]:
    """Every load outside of indices."""
    if isinstance(expr, Load):
        yield expr
    elif isinstance(expr, Apply):
        for arg in expr.args:
            yield from loads(arg)


def every_load(expr: Expr) -> Iterator[Load]:
    """Every load, those inside of indices too."""
    if isinstance(expr, Load):
        yield expr
    for part in expr.args if isinstance(expr, Apply) else expr.indices if isinstance(expr, Load) else ():
        yield from every_load(part)


def axes_of(expr: Expr) -> Iterator[Axis]:
    """Every axis that occurs, in indices too."""
    if isinstance(expr, Index):
        yield expr.axis
    for part in expr.args if isinstance(expr, Apply) else expr.indices if isinstance(expr, Load) else ():
        yield from axes_of(part)
