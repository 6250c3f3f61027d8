"""A library with a part on the CPU and one on the NeuronCore."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import relay

WEIGHTS = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """places = nonzero(x) on the CPU, y = x @ w on the NeuronCore."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], "find"),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    model = make_model(nodes, {"x": [4, 64]}, ["y", "places"], {"w": WEIGHTS}, opset=18)
    mod, params = relay.frontend.from_onnx(model)
    path = tmp_path_factory.mktemp("service") / "m.so"
    relay.build(mod, target="neuron", params=params).export_library(path)
    return path
