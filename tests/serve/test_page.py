"""docs/serve.md: its examples give what onnxruntime does, and its tables have all metrics, options and paths."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.docs.markdown import ROOT, blocks, shell_lines
from tests.onnx_models import make_model
from tests.serve.conftest import Start
from tests.serve.test_server import curl
from tvm_neuron.cli.main import main

pytestmark = pytest.mark.serve
PAGE = blocks("docs/serve.md")


def lines(mark: str) -> list[str]:
    return [line for block in PAGE if block.mark == mark for line in shell_lines(block)]


def test_the_examples(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    weights = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "product")
    onnx.save(make_model([node], {"x": [8, 4]}, ["y"], {"w": weights}), "mlp.onnx")
    compiled, served = map(shlex.split, lines("server"))
    assert main(compiled[1:]) == 0
    assert served[:2] == ["neuron-cc", "serve"]
    server = start(*served[2:])
    ports = {"localhost:8000": server.http.removeprefix("http://"), "localhost:8001": server.grpc}

    def here(text: str) -> str:
        return re.sub("localhost:800.", lambda found: ports[found[0]], text)

    asked = [
        subprocess.run(here(line), shell=True, capture_output=True, text=True, check=True) for line in lines("shell")
    ]
    ready, described, answer = (json.loads(done.stdout) for done in asked)
    assert ready == {"ready": True}
    assert described["inputs"][0]["shape"] == [-1, 4]
    # operands are rounded to bfloat16, 2^-9 each
    x = np.float32([[1, 2, 3, 4]])
    np.testing.assert_allclose(answer["outputs"][0]["data"], (x @ weights)[0], atol=2**-7 * (x @ abs(weights)).max())

    for block in (block for block in PAGE if block.mark == "python"):
        text = here(block.text)
        if "tritonclient" in text:  # in a process of its own, as its reader has it
            text += "\nnp.savez('found.npz', x=x, y=y)"
        subprocess.run([sys.executable, "-W", "error", "-c", text], check=True, cwd=tmp_path)
    reference = onnxruntime.InferenceSession(
        make_model([node], {"x": [3, 4]}, ["y"], {"w": weights}).SerializeToString()
    )
    with np.load("found.npz") as found:
        expected = reference.run(None, {"x": found["x"]})[0]
        bound = 2**-7 * (np.abs(found["x"]) @ np.abs(weights))
        assert (np.abs(found["y"] - expected) <= bound).all()

    text = (ROOT / "docs/serve.md").read_text()
    metrics = curl(f"{server.http}/metrics")[1]
    names = re.findall(r"^# TYPE (neuron_\w+) ", metrics, re.MULTILINE)
    assert {name for name in names if not name.endswith("_created")} == set(re.findall(r"`(neuron_\w+)`", text))
    assert server.end() == 0


def test_options_and_paths_exist() -> None:
    text = (ROOT / "docs/serve.md").read_text()
    told = subprocess.run(
        [sys.executable, "-m", "tvm_neuron.cli.main", "serve", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"`(--[a-z-]+)", text)) - {"--dynamic-batch"} <= set(re.findall(r"--[a-z-]+", told))
    rest = (ROOT / "tvm_neuron/serve/rest.py").read_text()
    paths = re.findall(r"`(?:GET|POST) (/[\w/]*)", text)
    assert len(paths) >= 7
    for path in paths:
        assert f'"{path.replace("NAME", "{name}")}' in rest, path
