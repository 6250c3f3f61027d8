"""Libraries to serve, and a server in a process of its own."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, relay

COMMAND = [sys.executable, "-m", "tvm_neuron.cli.main", "serve", "--http-port", "0", "--grpc-port", "0"]
WEIGHTS = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)


def expected(x: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """What a library of `factor` gives: the nearest bfloat16 numbers multiplied."""
    return (x @ (WEIGHTS * factor)).astype(np.float32)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """y = x @ w * factor: `any` takes any number of rows, `twice` has the factor 2, `fixed` takes two rows."""
    folder = tmp_path_factory.mktemp("served")
    found = {}
    for name, factor, dynamic in (("any", 1.0, True), ("twice", 2.0, True), ("fixed", 1.0, False)):
        rows = 8 if dynamic else 2
        node = helper.make_node("MatMul", ["x", "w"], ["y"], "product")
        mod, params = relay.frontend.from_onnx(make_model([node], {"x": [rows, 16]}, ["y"], {"w": WEIGHTS * factor}))
        options = BuildOptions(device="neuron/inf2", fp32_cast="none", dynamic_batch=dynamic)
        found[name] = folder / f"{name}.so"
        relay.build(mod, params=params, options=options).export_library(found[name])
    return found


@dataclass
class Server:
    """A server under way: its process, its addresses, and what it writes."""

    process: "subprocess.Popen[str]"
    http: str
    grpc: str
    log: list[dict[str, Any]]
    reader: threading.Thread

    def end(self, timeout: float = 60.0) -> int:
        """Sends SIGTERM, and gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        self.reader.join()
        return code


def _read(lines: IO[str], log: list[dict[str, Any]]) -> None:
    """All that it writes, lest it waits for a reader."""
    with lines:
        log += map(json.loads, lines)


Start = Callable[..., Server]


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """`start("any.so", "--queue", 4)` gives a server that is ready."""
    running: list[subprocess.Popen[str]] = []

    def begin(*words: Any) -> Server:
        process = subprocess.Popen([*COMMAND, *map(str, words)], stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stderr is not None
        log: list[dict[str, Any]] = []
        for line in process.stderr:
            assert line.startswith("{"), line + process.stderr.read()
            log.append(json.loads(line))
            if log[-1]["event"] == "ready":
                reader = threading.Thread(target=_read, args=(process.stderr, log))
                reader.start()
                return Server(process, log[-1]["http"], log[-1]["grpc"], log, reader)
        raise AssertionError("the server ended before it was ready")

    yield begin
    for process in running:
        process.kill()
        process.wait()
