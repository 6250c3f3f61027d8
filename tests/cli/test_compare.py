"""neuron-cc compare: what it prints and writes, its exit codes, and one sentence for each wrong word."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tests.numerics.models import convolved
from tests.onnx_models import reference
from tvm_neuron.codegen.kernels import affine


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(convolved(), path)
    return path


@pytest.mark.slow
def test_the_command(cli: Cli, model_file: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(5).standard_normal((1, 8, 6, 6)).astype("float32")
    given, page = tmp_path / "x.npz", tmp_path / "page.html"
    np.savez(given, x=x)
    words = ("compare", model_file, "--input", given, "--target", "inf2", "--what-if", "conv*=none")
    code, out, err = cli(*words, "--html", page, "--json", "--beginnings", 1)
    told = json.loads(out)
    assert (code, err, told["is_explained"], told["inputs"]) == (0, "", True, str(given))
    exact = reference(convolved(), {"x": x})[0]
    assert told["operators"][-1]["shape"] == list(exact.shape)
    assert [one["fp32_cast_of"] for one in told["what_if"]] == [{"conv*": "none"}]
    text = page.read_text()
    assert "<h2>Where numbers depart from float32</h2>" in text
    assert "error entering %" in text


def test_the_command_says_by_its_exit_code_that_something_is_wrong(
    cli: Cli, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = affine.emit_scaled
    monkeypatch.setattr(affine, "emit_scaled", lambda parts, channel: right(parts.times(1.1), channel))
    code, out, err = cli("compare", model_file, "--target", "inf2", "--beginnings", 0, "--what-if", "conv0=none")
    assert code == 3
    assert "operator relu1 alone" in err
    assert "inputs: random, seed 0" in out
    assert "│ conv0 " in out
    assert "│ conv0=none " in out
    assert "roundings explain no more than" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--input", "nowhere.npz"), "'nowhere.npz' can't be read: No such file or directory"),
        (("--input", "{model}"), "'{model}' is no .npz file: write it with numpy.savez(path, name=array, ...)"),
        (("--what-if", "conv0"), "--what-if 'conv0' is not PATTERN=MODE"),
        (("--top", "-1"), "--top -1: it is a number of operators, at least 0"),
        (("--beginnings", "-1"), "--beginnings -1: it is a number of operators, at least 0"),
        (("--seed", "-1"), "--seed -1: it is a number of at least 0"),
        (("--html", "nowhere/page.html"), "--html: there is no folder 'nowhere'"),
    ],
)
def test_wrong_words_get_one_sentence(cli: Cli, model_file: Path, words: tuple[str, ...], message: str) -> None:
    code, out, err = cli("compare", model_file, *(word.format(model=model_file) for word in words))
    assert (code, out) == (1, "")
    assert message.format(model=model_file) in err
    assert len(err.splitlines()) == 1
