"""Moves: shapes, orders, parts, borders; a few of them together as real models have them."""

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.steps.arithmetic import partner
from tests.random_models.value import Value


def factors(g: Growth, elems: int, rank: int) -> list[int]:
    """A random shape of that many elements."""
    shape = [1] * rank
    rest, divisor = elems, 2
    while rest > 1:
        if rest % divisor == 0:
            shape[g.draw(0, rank - 1)] *= divisor
            rest //= divisor
        else:
            divisor += 1
    return shape


def reshape(g: Growth) -> None:
    x = g.find()
    shape = factors(g, x.exact.size, g.draw(1, 5))
    if g.chance(0.3) and 0 not in shape:
        shape[g.draw(0, len(shape) - 1)] = -1
    if x.rank and len(shape) > 0 and g.chance(0.2) and -1 not in shape[:1] and shape[0] == x.shape[0]:
        shape[0] = 0
    g.add("Reshape", x, g.vector(shape))


def merge_or_part(g: Growth) -> None:
    """Two dimensions become one, or one becomes two."""
    x = g.find(lambda v: v.rank >= 2)
    shape, axis = list(x.shape), g.draw(0, x.rank - 2)
    if g.chance(0.5):
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    else:
        shape[axis : axis + 1] = factors(g, shape[axis], 2)
    g.add("Reshape", x, g.vector(shape))


def transpose(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 2)
    if g.chance(0.1):
        g.add("Transpose", x)
    else:
        g.add("Transpose", x, perm=[int(axis) for axis in g.rng.permutation(x.rank)])


def flatten(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1)
    g.add("Flatten", x, axis=g.draw(-x.rank, x.rank))


def squeeze(g: Growth) -> None:
    x = g.find(lambda v: 1 in v.shape)
    axes = [axis for axis, extent in enumerate(x.shape) if extent == 1 and g.chance(0.7)]
    if axes:
        g.add("Squeeze", x, g.vector(axes))


def unsqueeze(g: Growth) -> None:
    x = g.find(lambda v: v.rank <= 4)
    count = g.draw(1, 2)
    axes = [int(axis) for axis in g.rng.permutation(x.rank + count)[:count]]
    g.add("Unsqueeze", x, g.vector([axis - x.rank - count if g.chance(0.2) else axis for axis in axes]))


def concat(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1)
    axis, parts = g.draw(0, x.rank - 1), [x]
    for _ in range(g.draw(1, 3)):

        def fits(v: Value) -> bool:
            return v.dtype == x.dtype and v.rank == x.rank and all(
                a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != axis
            )  # fmt: skip

        if g.chance(0.6):
            parts.append(g.find(fits))
        else:
            parts.append(g.operand([g.draw(1, 9) if i == axis else e for i, e in enumerate(x.shape)], x.dtype))
    parts = [parts[int(place)] for place in g.rng.permutation(len(parts))]
    g.add("Concat", *parts, axis=axis - x.rank if g.chance(0.2) else axis)


def split(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1 and max(v.shape) > 1)
    axis = g.one_of([i for i, extent in enumerate(x.shape) if extent > 1])
    extent, count = x.shape[axis], g.draw(2, 3)
    if extent % count == 0 and g.chance(0.5):
        g.add_many("Split", [x], count, axis=axis, **({"num_outputs": count} if g.opset >= 18 else {}))
        return
    if g.opset >= 18 and g.chance(0.2) and extent > count:
        g.add_many("Split", [x], count, axis=axis, num_outputs=count)
        return
    first = g.draw(1, extent - 1)
    g.add_many("Split", [x, g.vector([first, extent - first])], 2, axis=axis)


def slice_(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1)
    starts, ends, axes, steps = [], [], [], []
    for axis, extent in enumerate(x.shape):
        if extent == 1 or g.chance(0.5):
            continue
        step = g.one_of([1, 1, 1, 2, 3, -1, -2])
        first, last = sorted(int(place) for place in g.rng.choice(extent + 1, 2, replace=False))
        start, end = (first, last) if step > 0 else (last - 1, first - 1 if first else -(2**31))
        if step > 0 and g.chance(0.2):
            start, end = start - extent, g.one_of([end, 2**31 - 1])
        starts.append(start)
        ends.append(end)
        axes.append(axis - x.rank if g.chance(0.2) else axis)
        steps.append(step)
    if not axes:
        raise UnfitError("nothing to cut")
    g.add("Slice", x, g.vector(starts), g.vector(ends), g.vector(axes), g.vector(steps))


def pad(g: Growth) -> None:
    x = g.find(lambda v: 1 <= v.rank <= 4)
    mode = g.one_of(["constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])])
    most = [3 if mode in ("constant", "edge") else min(3, extent - 1) for extent in x.shape]
    pads = [g.draw(0, limit) if g.chance(0.5) else 0 for limit in most * 2]
    if mode == "constant" and g.chance(0.2):
        pads[0] = -1
    value = [g.constant(g.random((), x.dtype))] if mode == "constant" and g.chance(0.5) else []
    g.add("Pad", x, g.vector(pads), *value, mode=mode)


def expand(g: Growth) -> None:
    x = g.find(lambda v: v.exact.size < 2000)
    shape = [g.draw(2, 5) if extent == 1 and g.chance(0.7) else extent for extent in x.shape]
    if len(shape) < 5 and g.chance(0.4):
        shape.insert(0, g.draw(1, 3))
    g.add("Expand", x, g.vector(shape))


def tile(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 1 and v.exact.size < 2000)
    g.add("Tile", x, g.vector([g.one_of([1, 1, 2, 3]) for _ in x.shape]))


def blocks(g: Growth) -> None:
    """DepthToSpace and SpaceToDepth."""
    x = g.find(lambda v: v.rank == 4)
    size = g.draw(2, 3)
    if x.shape[1] % size**2 == 0:
        g.add("DepthToSpace", x, blocksize=size, mode=g.one_of(["DCR", "CRD"]))
    elif x.shape[2] % size == 0 and x.shape[3] % size == 0:
        g.add("SpaceToDepth", x, blocksize=size)
    else:
        raise UnfitError("no blocks")


def shuffle(g: Growth) -> None:
    """A grouped shuffle of channels."""
    x = g.find(lambda v: v.rank >= 3 and v.shape[1] > 1)
    group = g.one_of([d for d in range(2, x.shape[1] + 1) if x.shape[1] % d == 0])
    wide = g.add("Reshape", x, g.vector([x.shape[0], group, x.shape[1] // group, *x.shape[2:]]))
    turned = g.add("Transpose", wide, perm=[0, 2, 1, *range(3, x.rank + 1)])
    g.add("Reshape", turned, g.vector(x.shape))


def windows(g: Growth) -> None:
    """Windows of an image as rows of a batch, sometimes rolled before, and sometimes back again."""
    x = g.find(lambda v: v.rank == 4 and v.shape[1] > 1 and v.shape[2] > 1)
    n, h, w, c = x.shape
    high, wide = (g.one_of([d for d in range(1, extent + 1) if extent % d == 0]) for extent in (h, w))
    if g.chance(0.5):
        x = _rolled(g, x, 1, g.draw(1, h - 1))
    split_shape = [n, h // high, high, w // wide, wide, c]
    parts = g.add("Transpose", g.add("Reshape", x, g.vector(split_shape)), perm=[0, 1, 3, 2, 4, 5])
    rows = g.add("Reshape", parts, g.vector([-1, high * wide, c]))
    if g.chance(0.5):
        rows = g.add("Add", rows, partner(g, rows))
        back = g.add("Reshape", rows, g.vector([n, h // high, w // wide, high, wide, c]))
        g.add("Reshape", g.add("Transpose", back, perm=[0, 1, 3, 2, 4, 5]), g.vector([n, h, w, c]))


def _rolled(g: Growth, x: Value, axis: int, shift: int) -> Value:
    ends = [(shift, 2**31 - 1), (0, shift)]
    parts = [g.add("Slice", x, g.vector([a]), g.vector([b]), g.vector([axis])) for a, b in ends]
    return g.add("Concat", *parts, axis=axis)


def triangle(g: Growth) -> None:
    x = g.find(lambda v: v.rank >= 2)
    if g.opset >= 14:
        where = [g.constant(np.array(g.draw(-2, 2), "int64"))] if g.chance(0.5) else []
        g.add("Trilu", x, *where, upper=g.draw(0, 1))


def shape_arithmetic(g: Growth) -> None:
    """A Reshape whose shape is computed from the tensor's own."""
    x = g.find(lambda v: v.rank >= 2)
    first = g.add("Gather", g.add("Shape", x), g.constant(np.array(0, "int64")), axis=0)
    rows = g.add("Unsqueeze", first, g.vector([0]))
    g.add("Reshape", x, g.add("Concat", rows, g.vector([-1]), axis=0))


STEPS = (
    reshape, merge_or_part, transpose, transpose, transpose, flatten, squeeze, unsqueeze, concat, concat, concat,
    split, split, slice_, slice_, slice_, pad, pad, expand, tile, blocks, shuffle, windows, triangle,
    shape_arithmetic,
)  # fmt: skip
