"""An internal error writes one bundle, without weights unless asked, from which it can be seen again."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.conftest import Cli
from tests.onnx_models import make_model
from tvm_neuron.codegen import function


@pytest.fixture
def large_model(tmp_path: Path) -> Path:
    weights = {"w": np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)}
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "product")
    onnx.save(make_model([node], {"x": [4, 16]}, ["y"], weights, opset=18), tmp_path / "secret.onnx")
    return tmp_path / "secret.onnx"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: Any) -> bytes:
        raise KeyError("a table of the compiler's")

    monkeypatch.setattr(function, "compile_function", fail)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("with_weights", [False, True])
def test_bundle_and_replay(with_weights: bool, cli: Cli, large_model: Path, tmp_path: Path) -> None:
    (tmp_path / "io.json").write_text('{"inputs": {"x": [[4, 16], "float32"]}}')
    words = ["--io-config", tmp_path / "io.json", "--output", tmp_path / "o.neff", "--logfile", tmp_path / "l.txt"]
    words += ["--bundle-weights"] if with_weights else []
    code, said, told = cli("compile", large_model, *words)
    assert (code, said) == (1, "")
    assert "internal error NCC510: neuron_0: KeyError" in told
    assert re.search("its operators: .*product", told)
    assert "neuron-cc-bundle-1.zip holds what is needed to see it again" in told
    assert not (tmp_path / "o.neff").exists()
    with zipfile.ZipFile(tmp_path / "neuron-cc-bundle-1.zip") as bundle:
        assert "a table of the compiler's" in bundle.read("traceback.txt").decode()
        assert "apache-tvm" in json.loads(bundle.read("facts.json"))["packages"]
        assert str(tmp_path) not in bundle.read("request.json").decode()
        model = onnx.load_model_from_string(bundle.read("model.onnx"))
    (held,) = model.graph.initializer
    (weight,) = onnx.load(large_model).graph.initializer
    if with_weights:
        np.testing.assert_array_equal(numpy_helper.to_array(held), numpy_helper.to_array(weight))
    else:
        assert not held.raw_data
        assert not held.float_data
    code, _, told = cli("replay", tmp_path / "neuron-cc-bundle-1.zip")
    assert code == 1
    assert "neuron-cc replay: internal error NCC510: neuron_0: KeyError" in told


def test_what_is_no_bundle(cli: Cli, onnx_file: Path) -> None:
    code, _, told = cli("replay", onnx_file)
    assert code == 1
    assert "net.onnx' is no bundle of neuron-cc: File is not a zip file" in told
