"""The examples in the documentation run, or at least name commands, modules and options that exist."""

import contextlib
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.docs.markdown import FILES, ROOT, Block, blocks, shell_lines
from tests.onnx_models import make_model
from tvm_neuron.cli.main import main

README = blocks("README.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader has the files of whom the examples speak; what one example writes the next may read."""
    path = tmp_path_factory.mktemp("reader")
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((8, 3, 3, 3)).astype("float32")}
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    onnx.save(make_model(nodes, {"image": [1, 3, 32, 32]}, ["y"], weights), path / "model.onnx")
    np.savez(path / "x.npz", image=rng.standard_normal((1, 3, 32, 32)).astype("float32"))
    return path


@pytest.mark.parametrize("block", [b for b in README if b.mark == "python"], ids=lambda block: block.text[:24])
def test_python_examples_run(block: Block, folder: Path) -> None:
    with contextlib.chdir(folder):
        exec(compile(block.text, "README.md", "exec"), {"__name__": "__main__"})


def test_shell_examples_run(folder: Path) -> None:
    lines = [line for block in README if block.mark == "shell" for line in shell_lines(block)]
    assert lines
    with contextlib.chdir(folder):
        for line in lines:
            program, *words = shlex.split(line)
            assert (program, main(words)) == ("neuron-cc", 0), line
    written = {path.name for path in folder.iterdir()}
    assert {"model.so", "relax.so", "model.neff", "model.txt", "y.npz", "timeline.json"} <= written


def test_every_python_or_shell_example_of_the_readme_is_run() -> None:
    unmarked = [b.text for b in README if b.language in ("python", "sh") and b.mark not in ("python", "shell")]
    assert all(line.startswith("make ") for text in unmarked for line in text.splitlines())


@pytest.mark.parametrize("file_name", FILES)
def test_commands_exist(file_name: str) -> None:
    """Make targets and Python modules, in code blocks and in running text."""
    text = (ROOT / file_name).read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)", text) + re.findall(r"^make ([a-z]+)", text, re.MULTILINE)) <= targets
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert find_spec(module) is not None, f"{file_name} names the module {module}"
    for script in re.findall(r"python (\w+/\w+\.py)", text):
        assert (ROOT / script).exists(), f"{file_name} names the script {script}"


@pytest.mark.parametrize("file_name", FILES)
def test_python_blocks_are_python(file_name: str) -> None:
    for block in blocks(file_name):
        if block.language == "python":
            compile(block.text, file_name, "exec")
