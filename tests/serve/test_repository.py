"""Models by name and version: what is loaded, what it costs on the device, and what can't be served."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from onnx import TensorProto, helper

from tests.onnx_models import make_model
from tests.serve.conftest import COMMAND, WEIGHTS, Start, expected
from tvm_neuron import BuildOptions, relay
from tvm_neuron.errors import ServiceError
from tvm_neuron.runtime import report
from tvm_neuron.serve.settings import Settings, places

pytestmark = pytest.mark.serve


def repository(settings: Settings, *texts: str) -> tuple[Any, Any]:
    from tvm_neuron.serve.metrics import Metrics
    from tvm_neuron.serve.repository import Repository

    metrics = Metrics()
    return Repository(places(texts), settings, metrics), metrics


def test_the_modelled_time_is_that_of_the_bucket_that_runs(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "product")
    mods = [relay.frontend.from_onnx(make_model([node], {"x": [rows, 16]}, ["y"], {"w": WEIGHTS})) for rows in (2, 512)]
    library = relay.build_buckets(
        mods, options=BuildOptions(device="neuron/inf2", fp32_cast="none", dynamic_batch=True)
    )
    library.export_library(tmp_path / "m.so")
    small, large = (report(tvm.runtime.load_module(str(tmp_path / "m.so")), n).latency_us for n in (0, 1))
    assert small < large

    async def ask() -> None:
        found, metrics = repository(Settings(), str(tmp_path / "m.so"))
        await found.load("m")
        due = 0.0
        for rows, us in ((1, small), (2, small), (3, large), (700, 2 * large)):
            x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
            outputs = await found.find("m").infer({"x": x})
            np.testing.assert_allclose(outputs["y"], expected(x), rtol=1e-5, atol=1e-5)
            due += us / 1e6
            line = next(s for s in metrics.text().decode().splitlines() if s.startswith("neuron_device_seconds_total"))
            assert float(line.split()[-1]) == pytest.approx(due)
        await found.close()

    asyncio.run(ask())


def test_one_sentence_says_why_a_file_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    relu = helper.make_node("Relu", ["x"], ["y"], "relu")
    half = make_model([relu], {"x": [1, 8]}, ["y"], dtype=TensorProto.BFLOAT16)
    nodes = [helper.make_node("MatMul", [a, w], [b], b) for a, w, b in (("x", "w", "h"), ("h", "v", "y"))]
    two = make_model(nodes, {"x": [1, 16]}, ["y"], {"w": WEIGHTS, "v": WEIGHTS.T.copy()})
    for name, made, options in (("half", half, BuildOptions()), ("piped", two, BuildOptions(pipeline_cores=2))):
        mod, params = relay.frontend.from_onnx(made)
        relay.build(mod, params=params, options=options).export_library(tmp_path / f"{name}.so")
    for file, settings, message in (
        (tmp_path / "text.so", Settings(), r"text\.so' can't be loaded as a compiled library: "),
        (
            tmp_path / "half.so",
            Settings(),
            r"half\.so': tensor 'x' is bfloat16, which the protocol's SDK does not carry",
        ),
        (tmp_path / "piped.so", Settings(cores=1), r"takes 2 cores: start the server with --cores 2 or more"),
    ):
        found, _ = repository(settings, f"m={file}")
        with pytest.raises(ServiceError, match=message):
            asyncio.run(found.load("m"))
        assert not found.is_ready


def test_addresses_that_are_taken(start: Start, libraries: dict[str, Path]) -> None:
    server = start(f"m={libraries['fixed']}")
    for option, address in (("--http-port", server.http.removeprefix("http://")), ("--grpc-port", server.grpc)):
        done = subprocess.run(
            [*COMMAND, libraries["fixed"], option, address.rpartition(":")[2]],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert re.search(rf"{address} can't be listened at \(.*\): free it, or give another by {option}", done.stderr)
        assert "Traceback" not in done.stderr
    assert server.end() == 0
