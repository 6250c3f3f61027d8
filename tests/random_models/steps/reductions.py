"""Reductions over any dimensions, places of extremes, the largest few, cumulative sums."""

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.value import Value

_REDUCTIONS = ["ReduceSum", "ReduceSum", "ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum", "ReduceProd"]  # fmt: skip
_OF_INTEGERS = ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1"]


def reduced(g: Growth, op: str, x: Value, axes: list[int] | None, keepdims: int) -> Value:
    """A reduction in the form of the model's opset."""
    if g.opset < 18 and op != "ReduceSum":
        return g.add(op, x, keepdims=keepdims, **({} if axes is None else {"axes": axes}))
    return g.add(op, x, *([] if axes is None else [g.vector(axes)]), keepdims=keepdims)


def some_axes(g: Growth, x: Value) -> list[int] | None:
    if g.chance(0.15):
        return None
    count = g.draw(1, x.rank)
    axes = [int(axis) for axis in g.rng.permutation(x.rank)[:count]]
    return [axis - x.rank if g.chance(0.3) else axis for axis in axes]


def reduce(g: Growth) -> None:
    x = g.numbers(1)
    op = g.one_of(_REDUCTIONS if x.is_float else _OF_INTEGERS)
    if op == "ReduceLogSum" and x.exact.min() < 0.05:
        x = g.add("Exp", g.add("Tanh", x))
    reduced(g, op, x, some_axes(g, x), g.draw(0, 1))


def reduce_bytes(g: Growth) -> None:
    x = g.find(lambda v: v.dtype in ("int8", "uint8", "bool") and v.rank > 0)
    if x.dtype == "bool" and g.opset < 20:
        return
    reduced(g, g.one_of(["ReduceMax", "ReduceMin"]), x, some_axes(g, x), g.draw(0, 1))


def _ranked(g: Growth) -> Value:
    """Numbers without several zeros of float16: what that rounds to 0 may differ, since all is computed in float32."""
    x = g.numbers(1)
    if x.exact.dtype == np.float16 and np.count_nonzero(x.exact) < x.exact.size - 1:
        raise UnfitError("what comes first among what float16 rounds to 0")
    return x


def arg(g: Growth) -> None:
    x = _ranked(g)
    g.add(g.one_of(["ArgMax", "ArgMin"]), x, axis=g.draw(-x.rank, x.rank - 1), keepdims=g.draw(0, 1),
          select_last_index=int(g.chance(0.2)))  # fmt: skip


def top(g: Growth) -> None:
    x = _ranked(g)
    axis = g.draw(-x.rank, x.rank - 1)
    count = g.draw(1, min(x.shape[axis], g.one_of([3, 8, 16, 30])))
    g.add_many("TopK", [x, g.vector([count])], 2, axis=axis, largest=g.draw(0, 1), sorted=1)


def cumulative(g: Growth) -> None:
    x = g.numbers(1)
    axis = g.constant(np.array(g.draw(-x.rank, x.rank - 1), g.one_of(["int32", "int64"])))
    g.add("CumSum", x, axis, exclusive=g.draw(0, 1), reverse=g.draw(0, 1))


def count_mask(g: Growth) -> None:
    """Positions from a mask, as detectors of transformers make them."""
    mask = g.find(lambda v: v.dtype == "bool" and v.rank > 0)
    x = g.add("Cast", mask, to=g.one_of([1, 6, 7]))
    g.add("CumSum", x, g.constant(np.array(g.draw(0, x.rank - 1), "int64")))


STEPS = (reduce, reduce, reduce, reduce, reduce_bytes, arg, top, cumulative, count_mask)
