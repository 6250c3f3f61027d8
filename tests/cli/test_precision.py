"""The words about precision: the original's rules, and one message for each contradiction."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tvm_neuron import neff


@pytest.mark.parametrize(
    ("words", "cast", "relayout"),
    [
        ([], "all", True),
        (["--fp32-cast", "matmult-fp16"], "matmult-fp16", True),
        (["--fast-math", "all"], "all", True),
        (["--fast-math", "none"], "matmult-bf16", False),
        (["--fast-math", "none", "fp32-cast-all-fp16"], "all-fp16", False),
        (["--fast-math", "none", "fast-relayout"], "matmult-bf16", True),
        (["--fast-math", "fp32-cast-matmult", "no-fast-relayout"], "matmult", False),
        (["--fast-math", "none", "fp32-cast-matmult-fp16", "--fp32-cast", "none"], "none", False),
    ],
)
@pytest.mark.usefixtures("fake_codegen")
def test_words(cli: Cli, onnx_file: Path, tmp_path: Path, words: list[str], cast: str, relayout: bool) -> None:
    out = tmp_path / "net.neff"
    code, _, told = cli("compile", onnx_file, "--output", out, *words)
    assert code == 0, told
    options = neff.load(out).options
    assert (options["fp32_cast"], options["fast_relayout"]) == (cast, relayout)
    assert f'option:           fp32_cast = "{cast}"' in cli("info", out)[1]


@pytest.mark.usefixtures("fake_codegen")
def test_of_operators(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.neff"
    words = ["--fp32-cast-of", "layer=3*=none", "--fp32-cast-of", "add=all-fp16"]
    code, _, told = cli("compile", onnx_file, "--output", out, *words)
    assert code == 0
    assert "warning: --fp32-cast-of 'layer=3*' fits the name of no operator: they are add, relu" in told
    assert "'add'" not in told
    assert neff.load(out).options["fp32_cast_of"] == {"layer=3*": "none", "add": "all-fp16"}
    assert not neff.load(out).options["saturate_infinity"]


@pytest.mark.usefixtures("fake_codegen")
def test_saturation(cli: Cli, onnx_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.neff"
    assert cli("compile", onnx_file, "--output", out, "--enable-saturate-infinity")[0] == 0
    assert neff.load(out).options["saturate_infinity"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fast-math", "all", "none"], "all and none exclude each other: give one of them"),
        (["--fast-math", "fp32-cast-all", "fp32-cast-matmult"], "fp32-cast-all and fp32-cast-matmult exclude"),
        (["--fast-math", "fast-relayout", "no-fast-relayout"], "fast-relayout and no-fast-relayout exclude"),
        (["--fp32-cast-of", "conv=half"], "--fp32-cast-of 'conv=half' is not PATTERN=MODE with a mode of all, "),
        (["--fp32-cast-of", "none"], "--fp32-cast-of 'none' is not PATTERN=MODE"),
    ],
)
def test_contradictions(cli: Cli, onnx_file: Path, words: list[str], said: str) -> None:
    code, _, told = cli("compile", onnx_file, *words)
    assert code == 1
    assert said in told


def test_unknown_words(cli: Cli, onnx_file: Path) -> None:
    assert cli("compile", onnx_file, "--fp32-cast", "half")[0] == 2
    assert cli("compile", onnx_file, "--fast-math", "faster")[0] == 2
