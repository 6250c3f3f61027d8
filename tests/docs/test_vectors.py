"""The benchmark of vectors draws the same cases for a seed, and each operator computes what its name says."""

import numpy as np
import onnx
import onnxruntime
import pytest

from benchmarks.vectors import MOST_ELEMS, OPERATORS, Case, draw


def test_what_is_drawn() -> None:
    cases = draw(200, seed=3)
    assert cases == draw(200, seed=3) != draw(200, seed=4)
    assert {case.operator for case in cases} == set(OPERATORS)
    assert {len(case.shape) for case in cases} == {1, 2, 3}
    assert all(64 <= np.prod(case.shape) <= MOST_ELEMS for case in cases)


@pytest.mark.parametrize("operator", OPERATORS)
def test_models(operator: str) -> None:
    model = Case(operator, (2, 1, 96)).model()
    onnx.checker.check_model(model)
    rng = np.random.default_rng(0)
    inputs = {each.name: rng.standard_normal((2, 1, 96), np.float32) for each in model.graph.input}
    (y,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    x = inputs["x"].astype(np.float64)
    shifted, powers = x - x.mean(-1, keepdims=True), np.exp(x - x.max(-1, keepdims=True))
    wanted = {
        "Add": x + inputs.get("z", 0), "Relu": np.maximum(x, 0), "Softmax": powers / powers.sum(-1, keepdims=True),
        "ReduceSum": x - x.sum(-1, keepdims=True), "ReduceMax": x - x.max(-1, keepdims=True), "ReduceMean": shifted,
        "LayerNormalization": shifted / np.sqrt((shifted**2).mean(-1, keepdims=True) + 1e-5),
    }[operator]  # fmt: skip
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
