"""Attention with any ratio of query heads to key heads, with masks, caches and rotations; feeding a gate."""

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.steps.linear import filters
from tests.random_models.value import Value


def _heads(g: Growth, x: Value, count: int, width: int) -> Value:
    """[batch, rows, inner] to [batch, heads, rows, width]."""
    batch, rows, inner = x.shape
    y = g.add("MatMul", x, filters(g, [inner, count * width], inner))
    y = g.add("Reshape", y, g.vector([batch, rows, count, width]))
    return g.add("Transpose", y, perm=[0, 2, 1, 3])


def _repeated(g: Growth, x: Value, times: int) -> Value:
    """Every head that often, as exporters write it."""
    if times == 1:
        return x
    batch, heads, rows, width = x.shape
    kind = g.draw(0, 2)
    if kind == 0:
        wide = g.add("Unsqueeze", x, g.vector([2]))
        wide = g.add("Expand", wide, g.vector([batch, heads, times, rows, width]))
        return g.add("Reshape", wide, g.vector([batch, heads * times, rows, width]))
    if kind == 1:
        return g.add("Gather", x, g.vector([h // times for h in range(heads * times)]), axis=1)
    wide = g.add("Tile", g.add("Reshape", x, g.vector([batch, heads, 1, rows * width])), g.vector([1, 1, times, 1]))
    return g.add("Reshape", wide, g.vector([batch, heads * times, rows, width]))


def _rotated(g: Growth, x: Value) -> Value:
    """Rotary positions."""
    half = x.shape[-1] // 2
    if half * 2 != x.shape[-1]:
        return x
    first, second = g.add_many("Split", [x, g.vector([half, half])], 2, axis=3)
    turned = g.add("Concat", g.add("Neg", second), first, axis=-1)
    angles = g.rng.uniform(0, 3, [x.shape[2], x.shape[3]])
    cosine, sine = (g.constant(each.astype(x.dtype)) for each in (np.cos(angles), np.sin(angles)))
    return g.add("Add", g.add("Mul", x, cosine), g.add("Mul", turned, sine))


def _masked(g: Growth, scores: Value) -> Value:
    kind = g.draw(0, 4)
    rows, columns = scores.shape[-2:]
    below = np.tri(rows, columns, columns - rows, dtype=bool)
    if kind == 0 and g.opset >= 14:
        return g.add("Add", scores, g.constant(np.where(below, 0, -100).astype(scores.dtype)))
    if kind == 1:
        return g.add("Where", g.constant(below), scores, g.constant(np.array(-1e3, scores.exact.dtype)))
    if kind == 2:
        return g.add("Add", scores, g.operand([1, scores.shape[1], rows, columns], scores.dtype))
    return scores


def attention(g: Growth) -> None:
    x = _sequence(g)
    groups, times = g.one_of([1, 1, 2, 2, 3, 4]), g.one_of([1, 1, 2, 3, 4])
    width = g.one_of([4, 8, 16, 7, 32])
    query, key, value = (_heads(g, x, count, width) for count in (groups * times, groups, groups))
    if g.chance(0.4):
        query, key = _rotated(g, query), _rotated(g, key)
    if g.chance(0.35) and len(g.inputs) < 4:
        past = [x.shape[0], groups, g.draw(1, 12), width]
        key, value = (
            g.add("Concat", g.input(g.normal(past, dtype=x.dtype)), each, axis=2) for each in (key, value)
        )  # fmt: skip
    if times > 1 and g.chance(0.3):
        scores, value = _grouped(g, query, key, value)
    else:
        key, value = _repeated(g, key, times), _repeated(g, value, times)
        scores = g.add("MatMul", query, g.add("Transpose", key, perm=[0, 1, 3, 2]))
    scale = g.constant(np.array(width**0.5, x.exact.dtype))
    scores = g.add("Div", scores, scale)
    if scores.rank == 4:
        scores = _masked(g, scores)
    result = g.add("MatMul", g.add("Softmax", scores, axis=-1), value)
    if result.rank == 5:
        result = g.add("Reshape", result, g.vector([x.shape[0], groups * times, x.shape[1], width]))
    joined = g.add("Reshape", g.add("Transpose", result, perm=[0, 2, 1, 3]), g.vector([*x.shape[:2], -1]))
    g.add("Add", x, g.add("MatMul", joined, filters(g, [joined.shape[-1], x.shape[-1]], joined.shape[-1])))


def _grouped(g: Growth, query: Value, key: Value, value: Value) -> tuple[Value, Value]:
    """Query heads as a dimension of their own, over which the keys are broadcast."""
    batch, heads, rows, width = query.shape
    groups = key.shape[1]
    query = g.add("Reshape", query, g.vector([batch, groups, heads // groups, rows, width]))
    key, value = (g.add("Unsqueeze", each, g.vector([2])) for each in (key, value))
    return g.add("MatMul", query, g.add("Transpose", key, perm=[0, 1, 2, 4, 3])), value


def _sequence(g: Growth) -> Value:
    if g.chance(0.6):
        try:
            return g.floats(3, 3, lambda v: v.dtype == g.main_float)
        except UnfitError:
            pass
    if g.folding or len(g.inputs) >= 4:
        raise UnfitError("no sequence")
    return g.input(g.normal([g.one_of([1, 1, 2]), g.one_of([1, 5, 16, 33]), g.one_of([8, 24, 32, 50])]))


def one_operator(g: Growth) -> None:
    """ONNX's own Attention."""
    if g.opset < 23 or g.folding or len(g.inputs) > 2:
        return
    batch, rows, columns = g.draw(1, 2), g.one_of([1, 5, 9]), g.one_of([4, 9, 17])
    groups, times, width = g.draw(1, 3), g.one_of([1, 1, 2, 3]), g.one_of([4, 8, 16])
    attributes: dict[str, object] = {"is_causal": g.draw(0, 1)} if rows <= columns else {}
    shapes = [[batch, groups * times, rows, width], [batch, groups, columns, width], [batch, groups, columns, width]]
    if g.chance(0.4):
        shapes = [[b, r, h * w] for b, h, r, w in shapes]
        attributes |= {"q_num_heads": groups * times, "kv_num_heads": groups}
    g.add("Attention", *(g.input(g.normal(shape)) for shape in shapes), **attributes)


def gate(g: Growth) -> None:
    """Squeeze and excitation, or a gated unit."""
    x = g.floats(2)
    if x.rank == 4 and g.chance(0.6):
        small = g.add("GlobalAveragePool", x)
        middle = g.draw(1, 8)
        small = g.add("Relu", g.add("Conv", small, filters(g, [middle, x.shape[1], 1, 1], x.shape[1])))
        small = g.add("Conv", small, filters(g, [x.shape[1], middle, 1, 1], middle))
        g.add("Mul", x, g.add("Sigmoid", small))
        return
    if x.shape[-1] % 2:
        raise UnfitError("odd")
    half = x.shape[-1] // 2
    left, right = g.add_many("Split", [x, g.vector([half, half])], 2, axis=-1)
    g.add("Mul", left, g.add("Mul", right, g.add("Sigmoid", right)))


STEPS = (attention, attention, attention, attention, one_operator, gate, gate)
