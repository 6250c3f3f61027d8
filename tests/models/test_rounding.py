"""The emulation of bfloat16 that gives the error bound rounds as ml_dtypes does, and rounds every tensor."""

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import helper

from tests.models.rounding import emulate_bfloat16
from tests.onnx_models import make_model

RNG = np.random.default_rng(0)


def test_every_step_is_rounded() -> None:
    weights = {"w": RNG.standard_normal((6, 5)).astype(np.float32), "b": RNG.standard_normal(5).astype(np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Exp", ["sum"], ["y"]),
    ]
    model = make_model(nodes, {"x": [4, 6]}, ["y"], weights)
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(emulate_bfloat16(model).SerializeToString(), options)

    def bf16(value: np.ndarray) -> np.ndarray:
        return value.astype(ml_dtypes.bfloat16).astype(np.float32)

    product = bf16(bf16(x) @ bf16(weights["w"]))
    (actual,) = session.run(None, {"x": x})
    np.testing.assert_allclose(actual, np.exp(bf16(product + weights["b"])), rtol=1e-6)
