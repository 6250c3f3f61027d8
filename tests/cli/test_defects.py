"""A defect of the compiler: a library is written all the same, and a warning, a bundle and the placement tell of it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from tests.cli.conftest import Cli
from tests.onnx_models import make_model
from tvm_neuron.codegen import compile_stage
from tvm_neuron.errors import ProgramError

shown = pytest.mark.filterwarnings("default::tvm_neuron.errors.DefectWarning")
WARNING = (
    "neuron-cc compile: warning: on the CPU: second: defect of the compiler, NCC511, bundle written to "
    "neuron-cc-bundle-1.zip: neuron_0, second: ProgramError: it waits for ever; please report it\n"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x w) v."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((16, 16)).astype(np.float32) for name in ("w", "v")}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("MatMul", ["b", "v"], ["y"], "second"),
    ]
    onnx.save(make_model(nodes, {"x": [4, 16]}, ["y"], weights), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.fixture(autouse=True)
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verify = compile_stage.verify

    def refuse(program: Any, device: Any) -> None:
        if any(origin.name == "second" for origin in program.origins):
            raise ProgramError("it waits for ever", "second")
        verify(program, device)

    monkeypatch.setattr(compile_stage, "verify", refuse)
    monkeypatch.chdir(tmp_path)


@shown
def test_a_library_is_written(cli: Cli, model: Path, tmp_path: Path) -> None:
    words = ("compile", model, "--output", "net.so", "--logfile", "log.txt", "--cache", tmp_path / "cache")
    code, said, told = cli(*words)
    assert (code, told.count("warning")) == (0, 1)
    assert WARNING in told
    assert "2 neuroncore, 1 cpu" in said
    assert WARNING.partition(": warning: ")[2] in Path("log.txt").read_text()
    _, said, _ = cli("report", "net.so", "--json")
    assert "defect of the compiler, NCC511, bundle written to neuron-cc-bundle-1.zip: neuron_0, second" in said
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    np.savez("x.npz", x=x)
    assert cli("run", "net.so", "--input", "x.npz", "--output", "y.npz")[0] == 0
    (expected,) = onnxruntime.InferenceSession(model.read_bytes()).run(None, {"x": x})
    error = np.linalg.norm(np.load("y.npz")["y"] - expected) / np.linalg.norm(expected)
    assert error < 2**-8  # the first product rounds both operands to bf16, each by up to 2^-9
    code, said, told = cli("replay", "neuron-cc-bundle-1.zip")
    assert (code, said) == (1, "")
    assert "neuron-cc replay: internal error NCC511: neuron_0, second: ProgramError: it waits for ever" in told
    code, _, told = cli(*words)  # it is told of each time, so nothing of it is kept
    assert code == 0
    assert "neuron-cc-bundle-2.zip: neuron_0" in told


@shown
@pytest.mark.parametrize("words", [("--output", "net.neff"), ("--output", "net.so", "--must-compile")])
def test_where_nothing_may_run_on_the_cpu_it_is_an_error(cli: Cli, model: Path, words: tuple[str, ...]) -> None:
    code, said, told = cli("compile", model, *words, "--verbose", "error")
    assert (code, said) == (1, "")
    assert told.startswith("neuron-cc compile: internal error NCC511: neuron_0, second: ProgramError: it waits for")
    assert "neuron-cc-bundle-1.zip holds what is needed to see it again" in told
    assert told.count("\n") == 2
    assert sorted(path.name for path in Path().iterdir()) == ["net.onnx", "neuron-cc-bundle-1.zip"]


def test_no_other_test_passes_by_it(cli: Cli, model: Path) -> None:
    code, _, told = cli("compile", model, "--output", "net.so")
    assert code == 1
    assert "DefectWarning" in told
    assert not Path("net.so").exists()


@shown
def test_quiet_but_for_errors(cli: Cli, model: Path) -> None:
    code, _, told = cli("compile", model, "--output", "net.so", "--verbose", "error", "--logfile", "log.txt")
    assert (code, told) == (0, "")
    assert "warning: on the CPU: second" in Path("log.txt").read_text()


@shown
def test_check_model_asks_without_compiling(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said, told = cli("check-model", model)
    assert (code, told) == (0, "")
    assert "100.0 %" in said


@pytest.mark.filterwarnings("always::tvm_neuron.errors.PlacementWarning")
def test_little_on_the_core_is_told_again_from_the_cache(cli: Cli, model: Path, tmp_path: Path) -> None:
    on_cpu = [word for name in ("first", "relu", "second") for word in ("--on-cpu", name)]
    words = ("compile", model, "--output", "net.so", *on_cpu, "--cache", tmp_path / "cache")
    for _ in range(2):
        code, _, told = cli(*words)
        assert code == 0
        assert "neuron-cc compile: warning: nothing of the model runs on the NeuronCore: the placement has" in told


def test_a_program_that_cannot_be_timed_is_ours(cli: Cli, onnx_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(*_: Any) -> None:
        raise ProgramError("Deadlock")

    monkeypatch.setattr("tvm_neuron.runtime.report", stuck)
    code, _, told = cli("compile", onnx_file, "--output", "net.so", "--verbose", "error")
    assert code == 1
    assert told.startswith("neuron-cc compile: internal error NCC511: ProgramError: Deadlock\n")
    assert not Path("net.so").exists()


@pytest.mark.slow
def test_nor_does_one_with_a_process_of_its_own(model: Path) -> None:
    script = """
import sys
from tvm_neuron.cli.main import main
from tvm_neuron.codegen import compile_stage

def broken(*_):
    raise AssertionError("planted")

compile_stage.verify = broken
sys.exit(main(["compile", "net.onnx", "--output", "net.so", "--verbose", "error"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "DefectWarning: on the CPU: " in done.stderr
