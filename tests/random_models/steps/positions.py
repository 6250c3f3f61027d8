"""Reads and writes at positions, known at compile time or computed."""

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.value import Value


def places(g: Growth, shape: list[int], extent: int) -> Value:
    """Positions below `extent`, some counted from the end; constant, an input, or computed."""
    low = -extent if g.chance(0.3) else 0
    array = g.rng.integers(low, extent, shape).astype(g.one_of(["int64", "int64", "int32"]))
    kind = g.draw(0, 9)
    if kind < 2 and not g.folding:
        fitting = [
            v for v in g.values.values()
            if v.dtype in ("int32", "int64") and not v.is_constant and v.samples is None and v.rank <= 3
            and v.exact.size and v.exact.min() >= -extent and v.exact.max() < extent
        ]  # fmt: skip
        if fitting and shape == []:
            return g.one_of(fitting)
    if kind < 4 and not g.folding and len(g.inputs) < 5:
        return g.input(array)
    return g.constant(array)


def gather(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1)
    axis = g.draw(0, x.rank - 1)
    shape = g.one_of([[], [], [3], [1], [2, 3], [x.shape[axis]]])
    g.add("Gather", x, places(g, shape, x.shape[axis]), axis=axis - x.rank if g.chance(0.2) else axis)


def gather_elements(g: Growth) -> None:
    x = g.find(lambda v: 1 <= v.rank <= 4)
    axis = g.draw(0, x.rank - 1)
    shape = [g.draw(1, 6) if i == axis else g.draw(1, extent) for i, extent in enumerate(x.shape)]
    g.add("GatherElements", x, places(g, shape, x.shape[axis]), axis=axis)


def gather_nd(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1)
    batch = g.draw(0, min(1, x.rank - 1))
    depth = g.draw(1, x.rank - batch)
    shape = [*x.shape[:batch], g.draw(1, 4)]
    parts = [g.rng.integers(0, x.shape[batch + i], shape) for i in range(depth)]
    array = np.stack(parts, -1).astype(np.int64)
    where = g.input(array) if g.chance(0.2) and not g.folding and len(g.inputs) < 5 else g.constant(array)
    g.add("GatherND", x, where, batch_dims=batch)


def _reduction(g: Growth, x: Value) -> dict[str, str]:
    if g.opset < 16 or x.dtype == "bool" or g.chance(0.4):
        return {}
    return {"reduction": g.one_of(["none", "add", "mul", *(["max", "min"] if g.opset >= 18 else [])])}


def scatter_nd(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1)
    depth = g.draw(1, x.rank)
    cells = int(np.prod(x.shape[:depth]))
    count = g.draw(1, min(cells, 6))
    chosen = g.rng.choice(cells, count, replace=False)  # each once: which of two wins is not defined
    array = np.stack(np.unravel_index(chosen, x.shape[:depth]), -1).astype(np.int64)
    updates = g.operand([count, *x.shape[depth:]], x.dtype)
    where = g.input(array) if g.chance(0.2) and not g.folding and len(g.inputs) < 5 else g.constant(array)
    g.add("ScatterND", x, where, updates, **_reduction(g, x))


def scatter_elements(g: Growth) -> None:
    x = g.find(lambda v: 1 <= v.rank <= 3)
    axis = g.draw(0, x.rank - 1)
    shape = [g.draw(1, extent) for extent in x.shape]
    order = np.argsort(g.rng.random([*shape[:axis], x.shape[axis], *shape[axis + 1 :]]), axis=axis)
    array = np.take(order, np.arange(shape[axis]), axis).astype(np.int64)
    if g.chance(0.3):
        array = array - x.shape[axis] * g.rng.integers(0, 2, array.shape)
    updates = g.operand(shape, x.dtype)
    where = g.input(array) if g.chance(0.2) and not g.folding and len(g.inputs) < 5 else g.constant(array)
    g.add("ScatterElements", x, where, updates, axis=axis, **_reduction(g, x))


def embedding(g: Growth) -> None:
    """Rows of a table by an input of token numbers."""
    rows, width = g.draw(5, 60), g.one_of([4, 16, 31, 64])
    shape = [g.draw(1, 2), g.draw(1, 9)]
    tokens = g.rng.integers(0, rows, shape)
    where = g.input(tokens.astype(g.one_of(["int64", "int32"]))) if len(g.inputs) < 5 else g.constant(tokens)
    g.add("Gather", g.constant(g.normal([rows, width])), where)


def one_hot(g: Growth) -> None:
    x = g.find(lambda v: v.dtype in ("int32", "int64") and v.rank <= 3)
    depth = g.draw(2, 9)
    values = g.constant(np.array([0, 1], g.one_of([g.main_float, "int32", "float32"])))
    g.add("OneHot", x, g.constant(np.array(depth, "int64")), values, axis=g.draw(-1, x.rank))


def reverse(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 2)
    batch = g.draw(0, 1)
    lengths = g.rng.integers(1, x.shape[1 - batch] + 1, [x.shape[batch]])
    g.add("ReverseSequence", x, g.vector(lengths), batch_axis=batch, time_axis=1 - batch)


def window_of(g: Growth) -> None:
    """Update of a cache at a place: what comes before, the new rows, what comes after."""
    x = g.floats(2)
    axis = g.draw(0, x.rank - 1)
    if x.shape[axis] < 2:
        raise UnfitError("too short")
    first = g.draw(0, x.shape[axis] - 1)
    new = g.operand([1 if i == axis else e for i, e in enumerate(x.shape)], x.dtype)
    parts = [new]
    if first:
        parts.insert(0, g.add("Slice", x, g.vector([0]), g.vector([first]), g.vector([axis])))
    if first + 1 < x.shape[axis]:
        parts.append(g.add("Slice", x, g.vector([first + 1]), g.vector([2**31]), g.vector([axis])))
    g.add("Concat", *parts, axis=axis)


STEPS = (gather, gather, gather_elements, gather_nd, scatter_nd, scatter_elements, embedding, one_hot, reverse,
         window_of)  # fmt: skip
