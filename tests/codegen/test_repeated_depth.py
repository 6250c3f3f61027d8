"""Products of rows that repeat themselves: their depth has an axis along which the factor that is read does not move.

Where depth was put together to one axis, the copy for it looked for that axis in the factor (`KeyError`).
"""

import numpy as np
import onnx
import pytest

from tests.codegen.on_core import PRECISIONS, check

RNG = np.random.default_rng(8)
HEAD = '<ir_version: 10, opset_import: ["": 17]>'


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("is_known", [True, False], ids=["weights", "data"])
@pytest.mark.parametrize(("chip", "fp32_cast"), [PRECISIONS[0], PRECISIONS[-1]])
@pytest.mark.parametrize(("repeated", "axis"), [("5, 3, 8", 1), ("5, 8, 3", 2), ("130, 33, 3", 2), ("9, 4, 40", 1)])
def test_a_product(repeated: str, axis: int, chip: str, fp32_cast: str, is_known: bool) -> None:
    extents = [int(extent) for extent in repeated.split(", ")]
    rows, depth = extents[0], extents[1] * extents[2]
    model = onnx.parser.parse_model(
        f"""{HEAD} m (float[{rows}, {extents[3 - axis]}] x, float[{depth}, 7] w) => (float[{rows}, 7] y)
        <int64[1] axis = {{{axis}}}, int64[3] wide = {{{repeated}}}, int64[2] flat = {{{rows}, {depth}}}>
        {{ a = Unsqueeze(x, axis)  many = Expand(a, wide)  r = Reshape(many, flat)  y = MatMul(r, w) }}"""
    )
    inputs = {"x": numbers(rows, extents[3 - axis]), "w": numbers(depth, 7)}
    if is_known:
        del model.graph.input[1]
        model.graph.initializer.append(onnx.numpy_helper.from_array(inputs.pop("w"), "w"))
    check(model, inputs, chip, fp32_cast)
