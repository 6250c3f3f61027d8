"""Products of every row with every row, as one row of numbers: rows of the product step across the partitions.

One transfer was to take them all out, and took the first of them as often as there are rows.
"""

import numpy as np
import onnx
import pytest

from tests.codegen.on_core import PRECISIONS, check

RNG = np.random.default_rng(7)
HEAD = '<ir_version: 10, opset_import: ["": 17]>'


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("chip", "fp32_cast"), [PRECISIONS[0], PRECISIONS[-1]])
@pytest.mark.parametrize("form", ["n = Abs(x)", "m = ReduceMean<axes: ints = [1]>(x)  n = Sub(x, m)"])
@pytest.mark.parametrize(("count", "depth"), [(32, 8), (64, 7), (40, 16), (33, 5), (128, 4), (96, 20), (8, 130)])
def test_every_row_by_every_row(count: int, depth: int, form: str, chip: str, fp32_cast: str) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} m (float[{count}, {depth}] x) => (float[{count * count}] y) <int64[1] row = {{-1}}>
        {{ {form}  t = Transpose<perm: ints = [1, 0]>(n)  z = MatMul(n, t)  y = Reshape(z, row) }}"""
    )
    check(model, {"x": numbers(count, depth)}, chip, fp32_cast)


@pytest.mark.parametrize("heads", [3, 4])
@pytest.mark.parametrize("count", [16, 32, 48])
def test_every_row_of_each_head(heads: int, count: int) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} m (float[{heads}, {count}, 9] x, float[{heads}, 9, {count}] w) => (float[{heads}, {count**2}] y)
        <int64[2] rows = {{{heads}, -1}}> {{ z = MatMul(x, w)  y = Reshape(z, rows) }}"""
    )
    check(model, {"x": numbers(heads, count, 9), "w": numbers(heads, 9, count)}, "inf2", "none")
