"""The cache of the command line: a second compile copies the first, unless anything that counts has changed."""

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.cli.conftest import Cli
from tests.onnx_models import make_model
from tvm_neuron import codegen
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import CompileError

pytestmark = pytest.mark.usefixtures("fake_codegen")


@pytest.fixture
def refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing can be compiled: what succeeds comes out of the cache."""

    def refuse(*_: object) -> bytes:
        raise CompileError("compiled again")

    monkeypatch.setattr(codegen.function, "compile_function", refuse)


@pytest.mark.parametrize("suffix", [".neff", ".so"])
def test_the_second_time_it_is_copied(
    cli: Cli, onnx_file: Path, tmp_path: Path, suffix: str, request: pytest.FixtureRequest
) -> None:
    words = ["compile", onnx_file, "--cache", tmp_path / "cache", "--json", "--output"]
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    code, said, told = cli(*words, first)
    assert code == 0, told
    request.getfixturevalue("refuses")
    code, again, told = cli(*words, second, "--verbose", "debug")
    assert code == 0, told
    assert "add (Add): neuroncore" in told
    assert json.loads(again) == json.loads(said)
    assert second.read_bytes() == first.read_bytes()
    inputs = tmp_path / "x.npz"
    np.savez(inputs, data=np.ones((4, 8), np.float32))
    assert cli("run", second, "--input", inputs, "--output", tmp_path / "y.npz")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--target", "inf2"], ["--fp32-cast", "none"], ["--fast-math", "no-fast-relayout"],
        ["--io-config", '{"inputs": {"data": [[4, 8], "float32"]}}'], ["--cache", "off"],
    ],
)  # fmt: skip
def test_other_wishes_are_compiled(
    cli: Cli, onnx_file: Path, tmp_path: Path, words: list[str], request: pytest.FixtureRequest
) -> None:
    given = ["compile", onnx_file, "--cache", tmp_path / "cache", "--output", tmp_path / "net.neff"]
    assert cli(*given)[0] == 0
    request.getfixturevalue("refuses")
    assert cli(*given)[0] == 0
    code, _, told = cli(*given, *words)
    assert code == 1
    assert "compiled again" in told


def test_a_damaged_entry_is_told_and_compiled(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    given = ["compile", onnx_file, "--cache", tmp_path / "cache", "--output", tmp_path / "net.neff"]
    assert cli(*given)[0] == 0
    (entry,) = (path for path in (tmp_path / "cache").iterdir() if path.name != "CACHEDIR.TAG")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1] + b"?")
    code, _, told = cli(*given)
    assert code == 0
    assert "an entry of the cache is damaged and made again" in told
    assert entry.read_bytes() == whole


def test_external_tensors_count(cli: Cli, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model = make_model([helper.make_node("Add", ["x", "w"], ["y"], "add")], {"x": [4, 8]}, ["y"], {})
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 8), np.float32), "w"))
    path = tmp_path / "net.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    given = ["compile", path, "--cache", tmp_path / "cache", "--output", tmp_path / "net.neff"]
    assert cli(*given)[0] == 0
    request.getfixturevalue("refuses")
    assert cli(*given)[0] == 0
    weights = tmp_path / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-1] + b"@")
    code, _, told = cli(*given)
    assert code == 1
    assert "compiled again" in told


def test_every_option_of_a_build_is_part_of_the_key() -> None:
    """Listeners, the moment at which time is up and how many processes search change no result by themselves."""
    others = {field.name for field in fields(BuildOptions)} - BuildOptions().to_dict().keys()
    assert others == {"on_stage", "on_defect", "ends_at", "processes"}
