"""How samples become the published numbers."""

import math
from pathlib import Path

import pytest

from benchmarks import publish, zoo
from benchmarks.row import Row, side_by_side
from benchmarks.table import CONSOLE, show
from tests.models.agreement import Agreement


def make_row(ours: tuple[float, ...], theirs: tuple[float, ...], bar: float) -> Row:
    return Row(what="a run", unit="ms", samples=ours, peer="b", peer_samples=theirs, bar=bar, is_bar_a_ratio=True)


def test_a_bar_on_the_ratio_holds_for_medians_and_for_the_best() -> None:
    row = make_row((30.0, 40.0, 50.0), (2.0, 10.0, 10.0), 10)
    assert (row.ours, row.theirs, row.ratio, row.best_ratio) == (40, 10, 4, 15)
    assert row.is_met is False
    assert make_row((30.0, 40.0, 50.0), (2.0, 10.0, 10.0), 16).is_met is True
    assert make_row((40.0, 90.0, 90.0), (10.0, 10.0, 20.0), 8).is_met is False


def test_a_bar_on_the_value_and_no_bar() -> None:
    assert Row(what="a", unit="s", samples=(3.0,), bar=4.0).is_met is True
    assert Row(what="a", unit="s", samples=(4.0,), bar=4.0).is_met is False
    assert Row(what="a", unit="s", samples=(math.nan,), bar=4.0).is_met is False
    assert Row(what="a", unit="s", samples=(4.0,)).to_json()["is_met"] is None


def test_samples_are_taken_in_turns() -> None:
    called: list[str] = []
    samples = side_by_side([(lambda: called.append("a"), 1), (lambda: called.append("b"), 2)], 2)
    assert called == ["a", "b", "b", "a", "b", "b"]
    assert [len(taken) for taken in samples] == [2, 4]


def test_the_table() -> None:
    with CONSOLE.capture() as captured:
        show([make_row((2000.0,), (3.0,), 10)], {"cores": "2"})
    assert "Measured on: cores 2" in captured.get()
    assert "2,000.0 ms" in captured.get()
    assert "missed" in captured.get()


def test_publishing_replaces_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("one\n<!-- x -->\nold\n<!-- /x -->\ntwo\n")
    publish.replace_block("a.md", "x", "new \\1  \nlines\n\n")
    assert (tmp_path / "a.md").read_text() == "one\n<!-- x -->\n```text\nnew \\1\nlines\n```\n<!-- /x -->\ntwo\n"
    with pytest.raises(ValueError, match="has 0 blocks 'y', not one"):
        publish.replace_block("a.md", "y", "")


def test_a_table_of_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Agreement(
        network="net", chip="inf1", on_core=7, on_cpu=("Where", "Erf", "Where"), errors={"a": 0.01, "b": 0.004},
        bounds={"a": 0.1, "b": 0.005}, compile_seconds=1.25, cycles=12345, latency_us=12.3, pe_utilisation=0.125,
        outputs={},
    )  # fmt: skip
    line = "| net | inf1 | 7 | 3 | 0.40% | 0.50% | 1.2 | 12,345 | 12 | 12.5% | 1 Erf, 2 Where |"
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("one\n<!-- x -->\n<!-- /x -->\n")
    publish.replace_table("a.md", "x", zoo.markdown([zoo.row(found)]))
    *_, rule, last, _, _ = (tmp_path / "a.md").read_text().splitlines()
    assert (rule.count("|"), last) == (len(zoo.HEAD) + 1, line)
