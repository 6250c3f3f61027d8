"""Contractions whose weights don't fit in SBUF at once are summed in parts, by channels and by window."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.relay import graph_executor
from tvm_neuron.runtime import report


def _weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("kind", ["many channels", "large window"])
def test_in_parts_as_onnxruntime_in_one(kind: str, chip: str) -> None:
    rng = np.random.default_rng([len(kind), len(chip)])
    if kind == "many channels":
        nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["g"], transB=1), helper.make_node("Tanh", ["g"], ["y"])]
        shape, weights = (2, 30_000), {"w": _weights(rng, 40, 30_000)}
    else:
        nodes = [
            helper.make_node("Flatten", ["x"], ["f"]),
            helper.make_node("Gemm", ["f", "w", "b"], ["g"], transB=1),
            helper.make_node("Tanh", ["g"], ["y"]),
        ]
        shape, weights = (2, 8, 44, 53), {"w": _weights(rng, 40, 8 * 44 * 53)}
    model = make_model(nodes, {"x": shape}, ["y"], {**weights, "b": _weights(rng, 40, 1)[:, 0]})
    x = rng.standard_normal(shape).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=f"neuron/{chip}", params=params)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    # Both operands are rounded to bf16 (relative error up to 2^-9 each); the sums stay in float32
    error = np.linalg.norm(executor.get_output(0).numpy() - expected) / np.linalg.norm(expected)
    assert error < 2**-8
    assert {row.where for row in report(library).placement} == {"neuroncore"}
