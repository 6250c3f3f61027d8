"""Casts between all dtypes, where the result is defined; and what is made of their results."""

import numpy as np
from onnx import helper

from tests.random_models.growth import Growth
from tests.random_models.value import Value

DTYPES = ("float32", "float32", "float16", "int8", "uint8", "int32", "int64", "bool", "float64")


def cast_to(g: Growth, x: Value, dtype: str) -> Value:
    """x in another dtype; what would not fit is made to fit first."""
    if x.is_float and dtype not in ("bool", "float16", "float32", "float64"):
        info = np.iinfo(dtype)
        if dtype == "uint8" and x.exact.min() < 0:
            x = g.add("Abs", x)
        if float(x.exact.max()) >= info.max or float(x.exact.min()) <= info.min - 1:
            bounds = [np.array(bound, x.exact.dtype) for bound in (max(info.min, -100), min(info.max, 100))]
            x = g.add("Clip", x, *map(g.constant, bounds))
    return g.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def cast(g: Growth) -> None:
    x = g.find()
    cast_to(g, x, g.one_of([dtype for dtype in DTYPES if dtype != x.dtype]))


def cast_back(g: Growth) -> None:
    """Integers and booleans as floats, so that the rest of the model goes on with them."""
    x = g.find(lambda v: not v.is_float)
    cast_to(g, x, g.main_float)


def cast_scaled(g: Growth) -> None:
    x = g.of_dtype(("uint8", "int8", "int32", "int64", "bool"))
    x = cast_to(g, x, g.main_float)
    x = g.add("Sub", x, g.constant(g.random([1] * x.rank, x.dtype))) if g.chance(0.5) else x
    g.add(g.one_of(["Div", "Mul"]), x, g.constant(np.array(g.one_of([255.0, 58.0, 16.0]), x.exact.dtype)))


def cast_like(g: Growth) -> None:
    x = g.find(lambda v: not v.is_float)
    if g.opset >= 15:
        g.add("CastLike", x, g.floats())


def round_then_cast(g: Growth) -> None:
    x = g.floats()
    cast_to(g, g.add(g.one_of(["Round", "Floor", "Ceil"]), x), g.one_of(["int32", "int64", "int8"]))


STEPS = (cast, cast, cast_back, cast_back, cast_scaled, cast_like, round_then_cast)
