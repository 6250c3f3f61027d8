"""Chains that a compiler shortens: scales of scales, constants of constants, what is read twice or comes back."""

import numpy as np

from tests.random_models.growth import Growth
from tests.random_models.value import Value


def scales(g: Growth) -> None:
    """Numbers multiplied, divided and added one after the other, on either side."""
    x = g.floats()
    if np.abs(x.exact).min() < 0.1:
        x = g.add("Add", g.add("Abs", x), g.constant(np.array(0.5, x.exact.dtype)))
    for _ in range(g.draw(2, 4)):
        number = np.array(g.one_of([0.5, 2.0, 1.5, 0.3, 3.0, 1.0, 0.1]), x.exact.dtype)
        if g.chance(0.3) and x.rank:
            number = g.rng.uniform(0.5, 2, [1 if g.chance(0.5) else e for e in x.shape]).astype(x.exact.dtype)
        op = g.one_of(["Mul", "Div", "Div", "Add"])
        x = g.add(op, *((x, g.constant(number)) if g.chance(0.5) else (g.constant(number), x)))


def constants(g: Growth) -> None:
    """A few constants, for the steps that read constants only."""
    for _ in range(g.draw(1, 3)):
        dtype = g.one_of([g.main_float, g.main_float, "float32", "int64", "int32", "bool", "int8", "uint8"])
        rank = g.draw(0, 4)
        g.constant(g.random([g.one_of([1, 2, 3, 4, 7, 33]) for _ in range(rank)], dtype))


def many_constants(g: Growth) -> None:
    """A constant made of several, added to a tensor."""
    x = g.floats(1, 5, lambda v: v.shape[0] > 1)
    cut = g.draw(1, x.shape[0] - 1)
    parts = [g.constant(g.random([rows, *x.shape[1:]], x.dtype)) for rows in (cut, x.shape[0] - cut)]
    whole = g.add("Concat", *parts, axis=0)
    if g.chance(0.4):
        chosen = g.rng.choice(x.shape[0], g.draw(1, x.shape[0]), replace=False).astype(np.int64)[:, None]
        updates = g.constant(g.random([len(chosen), *x.shape[1:]], x.dtype))
        whole = g.add("ScatterND", whole, g.constant(chosen), updates)
    g.add(g.one_of(["Add", "Mul", "Sub"]), x, whole)


def made(g: Growth) -> None:
    """Constants that operators make: ranges, filled tensors, unit matrices, places of what is not nought."""
    kind = g.draw(0, 3)
    if kind == 0:
        dtype = g.one_of(["int64", "int32", "float32"])
        g.add("Range", *(g.constant(np.array(number, dtype)) for number in (g.draw(0, 3), g.draw(4, 20), g.draw(1, 3))))
    elif kind == 1:
        from onnx import numpy_helper

        fill = g.random([1], g.one_of([g.main_float, "int64", "int32"]))
        g.add(
            "ConstantOfShape",
            g.vector([g.draw(1, 5) for _ in range(g.draw(1, 3))]),
            value=numpy_helper.from_array(fill),
        )
    elif kind == 2:
        g.add("EyeLike", g.constant(g.random([g.draw(1, 6), g.draw(1, 6)], "float32")), k=g.draw(-1, 1))
    else:
        g.add("NonZero", g.constant(g.random([g.draw(2, 6), g.draw(2, 6)], "bool")))


def there_and_back(g: Growth) -> None:
    """A move and its reverse with something between."""
    x = g.floats(2)
    perm = [int(axis) for axis in g.rng.permutation(x.rank)]
    y = g.add("Transpose", x, perm=perm)
    y = g.add(g.one_of(["Relu", "Sigmoid", "Neg", "Identity"]), y)
    g.add("Transpose", y, perm=[int(axis) for axis in np.argsort(perm)])


def itself(g: Growth) -> None:
    """A tensor combined with what was made of it."""
    x = g.floats()
    y: Value = g.add(g.one_of(["Sigmoid", "Tanh", "Relu", "Abs", "Neg"]), x)
    g.add(g.one_of(["Mul", "Add", "Sub", "Max"]), *((x, y) if g.chance(0.5) else (y, x)))


def new_input(g: Growth) -> None:
    if g.folding or len(g.inputs) >= 5:
        return
    dtype = g.one_of([g.main_float, g.main_float, "int32", "int64", "bool", "uint8", "int8", "float32"])
    g.input(g.random([g.one_of([1, 2, 3, 5, 8, 17]) for _ in range(g.draw(0, 4))], dtype))


STEPS = (scales, scales, constants, constants, many_constants, made, there_and_back, itself, new_input)
