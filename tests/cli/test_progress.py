"""Progress: plain lines where nobody watches, a live line on a terminal, nothing when asked for nothing."""

import pytest
from rich.console import Console

from tvm_neuron.cli import progress
from tvm_neuron.cli.progress import stages


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with stages("compile") as on_stage:
        on_stage("import")
        on_stage("link")
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" s ")[1] for line in err.splitlines()] == ["import", "link"]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with stages("compile", is_quiet=True) as on_stage:
        on_stage("import")
    assert capsys.readouterr() == ("", "")


def test_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(stderr=stderr, force_terminal=True))
    with stages("compile") as on_stage:
        on_stage("import")
    out, err = capsys.readouterr()
    assert out == ""
    assert "compile: import" in err
