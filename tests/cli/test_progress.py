"""Progress: plain lines where nobody watches, a live line on a terminal, nothing when asked for nothing."""

import pytest
from rich.console import Console

from tvm_neuron.cli import progress
from tvm_neuron.cli.estimate import Estimate
from tvm_neuron.cli.progress import stages


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with stages("compile") as on_stage:
        on_stage("import")
        on_stage("link")
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" s ", 1)[1] for line in err.splitlines()] == ["import", "link (about 0 s left)"]


def test_the_estimate() -> None:
    estimate = Estimate()
    left = {
        stage: estimate.seconds_left(stage, 10)
        for stage in (
            "import model.onnx", "partition", "compile neuron_0, 1 of 2", "neuron_0: check", "compile neuron_1, 2 of 2",
            "neuron_1: schedule", "neuron_1: 9.5 us; try strip_share = 3", "compile the CPU parts", "write model.so",
        )
    }  # fmt: skip
    assert left.pop("import model.onnx") is None
    assert left.pop("neuron_1: 9.5 us; try strip_share = 3") is None
    assert left["compile neuron_1, 2 of 2"] == pytest.approx(10 * (1 - 0.595) / 0.595)
    assert list(left.values()) == sorted(left.values(), reverse=True)


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
