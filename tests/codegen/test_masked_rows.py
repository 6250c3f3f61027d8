"""A softmax whose NaN are replaced, as torch exports attention: what comes out is what onnxruntime has."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import ROUNDING, on_core
from tests.onnx_models import make_model, reference

INF, NAN = float("inf"), float("nan")


def masked(shape: tuple[int, ...], axis: int) -> onnx.ModelProto:
    """Zeros where a softmax is not a number."""
    node = helper.make_node
    nodes = [
        node("Softmax", ["x"], ["p"], axis=axis), node("IsNaN", ["p"], ["is"]),
        node("Where", ["is", "zero", "p"], ["y"]),
    ]  # fmt: skip
    return make_model(nodes, {"x": shape}, ["y"], {"zero": np.zeros((), np.float32)})


@pytest.mark.parametrize(("chip", "precision"), [("inf1", "all"), ("inf2", "all"), ("inf2", "none")])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 70, 65), -1), ((4, 9, 5), 1), ((40, 300), 0), ((1, 2, 7, 1), -1)])
def test_rows_without_a_number(shape: tuple[int, ...], axis: int, chip: str, precision: str) -> None:
    """Rows of minus infinity alone, and with infinity or NaN in them, between those that have numbers."""
    model = masked(shape, axis)
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape).astype(np.float32)
    x[rng.random(shape) < 0.2] = -INF
    rows = np.moveaxis(x, axis, -1)  # a view
    flat = list(np.ndindex(rows.shape[:-1]))
    for number, value in enumerate((-INF, INF, NAN)):
        if len(flat) > 3 * number:
            rows[flat[3 * number]][0 if number else slice(None)] = value
    (wanted,) = reference(model, {"x": x})
    assert np.isfinite(wanted).all()
    assert (wanted == 0).any()
    (found,) = on_core(model, {"x": x}, chip, precision)
    assert np.array_equal(found == 0, wanted == 0)
    assert np.abs(found - wanted).max() <= 8 * max(ROUNDING[precision], 2.0**-22)  # of probabilities; exp has its own
