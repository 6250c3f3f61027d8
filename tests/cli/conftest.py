"""The command line in this process, and a code generator that knows one subgraph: y = relu(x + w)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron.codegen
from tests.neff.samples import add_relu
from tvm_neuron import neff
from tvm_neuron.cli.main import main
from tvm_neuron.partition import Match

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`cli("info", path)` gives (exit code, stdout, stderr)."""

    def call(*words: Any) -> tuple[int, str, str]:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # how argparse ends
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def neff_file(tmp_path: Path) -> Path:
    """A NEFF of y = relu(x + w)."""
    path = tmp_path / "r.neff"
    neff.save(add_relu(), path)
    return path


@pytest.fixture
def fake_codegen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every subgraph becomes that of `add_relu`, under the names it has in the model."""

    def compile_function(func: Any, name: str, device: Any, options: Any) -> bytes:
        whole = add_relu(name)
        renamed = {"x": str(func.params[0].name), "y": str(func.attrs["neuron.outputs"][0])}
        tensors = tuple(replace(t, name=renamed.get(t.name, t.name)) for t in whole.program.tensors)
        infos: dict[str, Any] = {
            kind: tuple(replace(i, name=renamed[i.name]) for i in getattr(whole, kind))
            for kind in ("inputs", "outputs")
        }
        made = replace(
            whole, program=replace(whole.program, tensors=tensors), device=device, options=options.to_dict(), **infos
        )
        return neff.write(made)

    function = SimpleNamespace(compile_function=compile_function, can_schedule=lambda *_: Match())
    monkeypatch.setattr(tvm_neuron.codegen, "function", function, raising=False)


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    """result = relu(data + w)."""
    return save_model(tmp_path / "net.onnx", [])


@pytest.fixture
def mixed_onnx_file(tmp_path: Path) -> Path:
    """places = nonzero(relu(data + w)): its last operator can't run on a NeuronCore."""
    return save_model(tmp_path / "mixed.onnx", [helper.make_node("NonZero", ["result"], ["places"], "find")])


def save_model(path: Path, more: list[onnx.NodeProto]) -> Path:
    weights = numpy_helper.from_array(np.arange(32, dtype=np.float32).reshape(4, 8) - 16, "w")
    nodes = [
        helper.make_node("Add", ["data", "w"], ["sum"], "add"),
        helper.make_node("Relu", ["sum"], ["result"], "relu"),
    ]
    inputs = [helper.make_tensor_value_info("data", TensorProto.FLOAT, [4, 8])]
    last = ("places", TensorProto.INT64, [2, None]) if more else ("result", TensorProto.FLOAT, [4, 8])
    graph = helper.make_graph([*nodes, *more], "net", inputs, [helper.make_tensor_value_info(*last)], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path
