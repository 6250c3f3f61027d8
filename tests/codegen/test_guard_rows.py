"""Attention as torch exports it, in which what would be NaN becomes 0: beside onnxruntime, row by row."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import ROUNDING, on_core
from tests.onnx_models import make_model, reference
from tests.stages.networks import compile_model
from tvm_neuron.isa import TensorScalar

Array = np.ndarray[Any, Any]


def attention(heads: int, rows: int, keys: int, size: int, is_kept: bool = False) -> onnx.ModelProto:
    """Of scores and values; weights that something else reads, too, are outputs beside."""
    node = helper.make_node
    nodes = [
        node("Softmax", ["scores"], ["weights"], axis=-1), node("IsNaN", ["weights"], ["bad"]),
        node("Where", ["bad", "zero", "weights"], ["guarded"]), node("MatMul", ["guarded", "values"], ["y"]),
    ]  # fmt: skip
    shapes = {"scores": (heads, rows, keys), "values": (heads, keys, size)}
    return make_model(nodes, shapes, ["y", *(["weights"] if is_kept else [])], {"zero": np.zeros((), np.float32)})


def data(model: onnx.ModelProto) -> dict[str, Array]:
    """Scores of which some rows are masked, wholly or in part, or have a NaN or an infinity; and values."""
    random = np.random.default_rng(5)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    found = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    scores = found["scores"]
    scores[:, 1, :] = -np.inf
    scores[:, 2, scores.shape[2] // 2 :] = -np.inf
    scores[0, 3, 4] = np.nan
    scores[-1, 4, 5] = np.inf
    scores[0, 5, :] = -1e30
    scores[0, 6, 0] = 1e30
    return found


@pytest.mark.parametrize(("chip", "precision"), [("inf1", "all"), ("inf2", "none")])
@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("sizes", [(4, 64, 64, 64), (3, 145, 145, 64), (2, 9, 300, 16)])
def test_rows_are_zero_where_they_would_be_nan(
    sizes: tuple[int, int, int, int], is_kept: bool, chip: str, precision: str
) -> None:
    """Eight roundings of numbers up to 1: scores, exponentials, weights, and values that they multiply."""
    model = attention(*sizes, is_kept)
    given = data(model)
    once = max(ROUNDING[precision], 2.0**-18)  # exp's on ACT, and sums of some hundred
    for found, wanted in zip(on_core(model, given, chip, precision), reference(model, given), strict=True):
        np.testing.assert_allclose(found, wanted, 0, 8 * once)
        assert found.shape == wanted.shape


@pytest.mark.parametrize("is_kept", [False, True])
def test_one_comparison_for_each_row(is_kept: bool) -> None:
    """Of weights that something else reads, NaN stays, and each element is compared."""
    program = compile_model(attention(1, 64, 64, 64, is_kept), "neuron/inf2").program
    found = [part for _, part in program.instructions() if isinstance(part, TensorScalar)]
    by_element = [part for part in found if "is_le" in (part.op0, part.op1)]
    by_row = [part for part in found if part.op0 == "mod"]
    assert (len(by_element), len(by_row)) == ((1, 0) if is_kept else (0, 1))
