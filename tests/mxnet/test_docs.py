"""docs/mxnet.md: its examples run as they stand there, and its list of operators is that of the converters."""

import re
import shlex
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, blocks, shell_lines
from tests.mxnet.files import write_network
from tvm_neuron.cli.main import main
from tvm_neuron.frontend.mxnet.operators import CONVERTERS

PAGE = "docs/mxnet.md"


def listed() -> str:
    """The names of all converters, those of a file in a row."""
    rows: dict[str, list[str]] = {}
    for name, convert in CONVERTERS.items():
        rows.setdefault(convert.__module__.rpartition(".")[2], []).append(name)
    return "".join(f"* **{row}**: {', '.join(f'`{name}`' for name in sorted(names))}\n" for row, names in rows.items())


def test_operators_are_listed() -> None:
    (found,) = re.findall("<!-- operators -->\n(.*)<!-- /operators -->", (ROOT / PAGE).read_text(), re.DOTALL)
    assert found == listed()


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_network(tmp_path)
    monkeypatch.chdir(tmp_path)
    shell, python = (next(each for each in blocks(PAGE) if each.mark == mark) for mark in ("shell", "python"))
    (line,) = shell_lines(shell)
    command, *words = shlex.split(line)
    assert command == "neuron-cc"
    assert main(words) == 0
    assert (tmp_path / "net.neff").exists()
    capsys.readouterr()
    exec(compile(python.text, PAGE, "exec"), {})
    assert capsys.readouterr().out.startswith("[[")
