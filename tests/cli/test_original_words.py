"""The original compilers' command lines: their words work, or say what to do instead."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tvm_neuron import neff
from tvm_neuron.cli.retired import RETIRED


def words_of(name: str) -> list[str]:
    return [name] if RETIRED[name].words in (0, "?") else [name, "7"]


@pytest.mark.usefixtures("fake_codegen")
def test_retired_options_are_taken_with_a_note_each(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    given = [word for name in RETIRED for word in words_of(name)]
    code, _, told = cli("compile", onnx_file, "--output", tmp_path / "n.neff", "--verbose", "error", *given)
    assert code == 0, told
    for name, option in RETIRED.items():
        assert f"note: {name} is no longer needed and changes nothing: {option.why}" in told


@pytest.mark.usefixtures("fake_codegen")
@pytest.mark.parametrize(
    ("words", "cast"),
    [
        (["--auto-cast", "none"], "none"), (["--auto-cast", "matmult"], "matmult-bf16"),
        (["--auto-cast", "all", "--auto-cast-type", "fp16"], "all-fp16"),
        (["--auto-cast-type", "fp16"], "matmult-fp16"), ([], "all"),
    ],
)  # fmt: skip
def test_auto_cast(words: list[str], cast: str, cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    code, _, told = cli("compile", onnx_file, "--output", tmp_path / "n.neff", "--target", "inf2", *words)
    assert code == 0, told
    assert neff.load(tmp_path / "n.neff").options["fp32_cast"] == cast


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--auto-cast-type", "tf32"], "--auto-cast-type tf32: the modelled PE array multiplies bf16 and fp16"),
        (["--auto-cast", "all", "--fp32-cast", "none"], "--auto-cast says what --fp32-cast and --fast-math say"),
        (["--framework", "PYTORCH"], "net.onnx' is no file of it by its name (PYTORCH: .pt2, .pt, .pth; XLA: .mlir"),
        (["--framework", "TENSORFLOW"], "net.onnx' is no file of it by its name (PYTORCH: "),
        (["--logfile", "nowhere/log.txt"], "--logfile: there is no folder 'nowhere'"),
    ],
)
def test_what_to_do_instead(words: list[str], expected: str, cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    code, said, told = cli("compile", onnx_file, "--output", tmp_path / "n.neff", *words)
    assert (code, said) == (1, "")
    assert expected in told
    assert not (tmp_path / "n.neff").exists()


@pytest.mark.usefixtures("fake_codegen")
@pytest.mark.parametrize(
    ("level", "has_progress", "has_rows"),
    [("debug", True, True), ("info", True, False), ("35", True, False), ("error", False, False), ("50", False, False)],
)
def test_verbosity(level: str, has_progress: bool, has_rows: bool, cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    code, _, told = cli("compile", onnx_file, "--output", tmp_path / "n.neff", "--verbose", level)
    assert code == 0
    assert ("s import" in told, "relu (Relu): neuroncore" in told) == (has_progress, has_rows)


def test_no_such_level(cli: Cli, onnx_file: Path) -> None:
    code, _, told = cli("compile", onnx_file, "--verbose", "loud")
    assert code == 2
    assert "'loud' is none of debug, info" in told


@pytest.mark.usefixtures("fake_codegen")
def test_the_log_file_holds_everything_of_success_and_failure(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    options = ["--verbose", "error", "--logfile", log]
    code, _, told = cli("compile", onnx_file, "--output", tmp_path / "n.neff", *options)
    assert (code, told) == (0, "")
    text = log.read_text()
    assert "command line: " in text
    assert "import" in text
    assert "relu (Relu): neuroncore" in text
    assert cli("compile", tmp_path / "none.onnx", "--output", tmp_path / "n.neff", *options)[0] == 1
    assert "ModelError: " in log.read_text()


@pytest.mark.usefixtures("fake_codegen")
def test_summary_as_json(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    code, said, _ = cli("compile", onnx_file, "--output", tmp_path / "n.neff", "--json")
    assert code == 0
    assert [row["where"] for row in json.loads(said)["placement"]] == ["neuroncore", "neuroncore"]


@pytest.mark.usefixtures("fake_codegen")
@pytest.mark.parametrize(
    ("words", "level", "seconds"),
    [([], 2, None), (["-O1"], 1, None), (["--O2"], 2, None), (["--optlevel", "3", "--time-budget", "60"], 3, 60.0)],
)
def test_levels(words: list[str], level: int, seconds: float | None, cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    code, _, told = cli("compile", onnx_file, "--output", tmp_path / "n.neff", *words)
    assert code == 0, told
    made = neff.load(tmp_path / "n.neff").options
    assert (made["optlevel"], made["time_budget_seconds"]) == (level, seconds)
