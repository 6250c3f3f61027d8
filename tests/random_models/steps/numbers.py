"""Whole numbers, floats and truths of small tensors of any rank, mixed as fuzzers of compilers mix them."""

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.steps.arithmetic import partner
from tests.random_models.steps.casts import cast_to
from tests.random_models.steps.reductions import reduced, some_axes
from tests.random_models.value import Value

_DTYPES = ("float32", "int32", "int64", "float64")


def _pair(g: Growth) -> tuple[Value, Value]:
    """Two tensors of one dtype that broadcast: of those that there are, one cast to that of the other."""
    x = g.numbers()
    kind = g.draw(0, 3)
    if kind == 0:
        return x, partner(g, x)
    y = g.find(lambda v: v is not x and _broadcast(v.shape, x.shape))
    if kind == 1 and x.dtype != "bool" and y.dtype != "bool":
        return x, cast_to(g, y, x.dtype) if y.dtype != x.dtype else y
    dtype = g.one_of(_DTYPES)
    return tuple(v if v.dtype == dtype else cast_to(g, v, dtype) for v in (x, y))  # type: ignore[return-value]


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def combined(g: Growth) -> None:
    g.add(g.one_of(["Add", "Sub", "Mul", "Max", "Min"]), *_pair(g))


def chosen(g: Growth) -> None:
    """One of two by a comparison of them, or of others."""
    x, y = _pair(g)
    mask = g.add(g.one_of(["Less", "Greater", "Equal", "GreaterOrEqual"]), x, y)
    if g.chance(0.3):
        other = g.find(lambda v: v.dtype == "bool" and _broadcast(v.shape, mask.shape))
        mask = g.add(g.one_of(["And", "Or", "Xor"]), mask, other)
    g.add("Where", g.add("Not", mask) if g.chance(0.2) else mask, x, y)


def clipped(g: Growth) -> None:
    x = g.find(lambda v: v.dtype in ("int32", "int64", "int8", "uint8"))
    low, high = (g.constant(np.array(bound, x.exact.dtype)) for bound in g.one_of([(0, 5), (1, 100), (3, 4)]))
    g.add("Clip", x, *g.one_of([(low, high), (low,), (None, high)]))


def counted(g: Growth) -> None:
    """How many are true."""
    x = g.find(lambda v: v.dtype == "bool" and v.rank > 0)
    x = g.add("Cast", x, to=g.one_of([1, 6, 7]))
    reduced(g, g.one_of(["ReduceSum", "ReduceMax", "ReduceMean"]), x, some_axes(g, x), g.draw(0, 1))


def place_as_number(g: Growth) -> None:
    """The place of an extreme, computed with."""
    x = g.numbers(1)
    axis = g.draw(0, x.rank - 1)
    place = g.add(g.one_of(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=1)
    g.add(g.one_of(["Add", "Mul", "Sub"]), x, place if place.dtype == x.dtype else cast_to(g, place, x.dtype))


def single(g: Growth) -> None:
    """One element, or the sum of all, without dimensions; and back into a tensor."""
    x = g.numbers()
    if x.exact.size == 1:
        y = g.add("Reshape", x, g.vector([]))
    else:
        y = reduced(g, g.one_of(["ReduceMax", "ReduceMin", "ReduceMean"]), x, None, 0)
    y = g.add(g.one_of(["Neg", "Abs"]), y)
    if g.chance(0.5):
        g.add(g.one_of(["Sub", "Max"]), x, y)
    else:
        g.add("Expand", y, g.vector([g.draw(1, 5) for _ in range(g.draw(0, 3))]))


def turned(g: Growth) -> None:
    """Functions that other families leave out."""
    x = g.floats()
    kind = g.draw(0, 2)
    if kind == 0:
        g.add("Tan", g.add("Clip", x, *(g.constant(np.array(end, x.exact.dtype)) for end in (-1.2, 1.2))))
    elif kind == 1:
        if np.abs(x.exact).min() < 0.1:
            x = g.add("Add", g.add("Abs", x), g.constant(np.array(0.5, x.exact.dtype)))
        logarithm = g.add("Log", g.add("Abs", x))
        g.add("Div", logarithm, g.constant(np.log(np.array(2, x.exact.dtype))))
    else:
        g.add("Mod", x, g.constant(np.array(g.one_of([1.5, 2, 0.7]), x.exact.dtype)), fmod=1)


def joined(g: Growth) -> None:
    """Tensors of one rank after another, in the dtype of the first."""
    x = g.find(lambda v: v.rank >= 1 and v.dtype != "bool")
    axis = g.draw(0, x.rank - 1)

    def fits(v: Value) -> bool:
        return v.rank == x.rank and all(a == b or i == axis for i, (a, b) in enumerate(zip(v.shape, x.shape)))  # noqa: B905

    others = [g.find(fits) for _ in range(g.draw(1, 3))]
    others = [v if v.dtype == x.dtype else cast_to(g, v, x.dtype) for v in others]
    if others == [x]:
        raise UnfitError("of itself alone")
    g.add("Concat", x, *others, axis=axis)


STEPS = (combined, combined, combined, chosen, chosen, clipped, counted, place_as_number, single, turned, joined)
