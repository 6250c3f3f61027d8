"""A small network with an open batch, and a Ray of two processes that the tests of a file share."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_models import make_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = relu(conv(x)) @ w, of x with an open batch."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((16, 8, 3, 3), np.float32), "v": rng.standard_normal((16, 4), np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("MatMul", ["f", "v"], ["y"], name="classify"),
    ]
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(make_model(nodes, {"x": ["n", 8, 14, 14]}, ["y"], weights), path)
    return path


@pytest.fixture(scope="module")
def processes() -> Iterator[None]:
    """A Ray that sweeps use because it is there already."""
    import ray

    ray.init(
        address="local", num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip
    yield
    ray.shutdown()
