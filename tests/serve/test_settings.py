"""What `neuron-cc serve` refuses before anything is loaded; it needs no extra for that."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 (a fixture)
from tvm_neuron.errors import OptionError
from tvm_neuron.serve.settings import Place, Settings, places


def test_names_and_versions(tmp_path: Path) -> None:
    file = tmp_path / "net.so"
    file.touch()
    assert Place.parse(str(file)) == Place("net", "1", file)
    assert Place.parse(f"bert={file}") == Place("bert", "1", file)
    assert Place.parse(f"bert:12={file}") == Place("bert", "12", file)
    assert [place.version for place in places([f"a:1={file}", f"a:2={file}"])] == ["1", "2"]
    with pytest.raises(
        OptionError, match="version 1 of model 'a' is given twice: write NAME:VERSION=FILE with another"
    ):
        places([f"a={file}", f"a:1={file}"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["nowhere.so"],
            "'nowhere.so' is no file: compile a library, neuron-cc compile model.onnx --output nowhere.so",
        ),
        (["a/b={file}"], "is not FILE, NAME=FILE or NAME:VERSION=FILE, the version being a number"),
        (["a:new={file}"], "is not FILE, NAME=FILE or NAME:VERSION=FILE, the version being a number"),
        (["{file}", "--queue", "0"], "--queue 0: it must be at least 1"),
        (["{file}", "--http-port", "70000"], "--http-port 70000: it must be at least 0 and at most 65535"),
        (["{file}", "--cores", "0"], "--cores 0: it must be at least 1"),
        (["{file}", "--request-timeout-seconds", "0"], "--request-timeout-seconds 0: it must be more than 0"),
    ],
)
def test_one_sentence_says_what_is_wrong(cli: Cli, tmp_path: Path, words: list[str], message: str) -> None:  # noqa: F811
    file = tmp_path / "net.so"
    file.touch()
    code, out, err = cli("serve", *(word.format(file=file) for word in words))
    assert (code, out) == (1, "")
    assert message in err


def test_without_the_extra(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    (tmp_path / "net.so").touch()
    monkeypatch.setitem(sys.modules, "kserve", None)
    monkeypatch.setitem(sys.modules, "kserve.protocol.infer_type", None)
    for name in [name for name in sys.modules if name.startswith("tvm_neuron.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    code, _, err = cli("serve", tmp_path / "net.so")
    assert code == 1
    assert "a server needs the package" in err
    assert "pip install 'tvm-neuron[serve]'" in err


def test_where_it_can_be_reached() -> None:
    assert Settings().is_local
    assert Settings(host="::1").is_local
    assert not Settings(host="0.0.0.0").is_local
