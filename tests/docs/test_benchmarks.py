"""How samples become the published numbers."""

import math
import pickle
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import machine, publish, record, zoo
from benchmarks.groups import GROUPS, Group, run
from benchmarks.row import Bar, Kind, Row, side_by_side
from benchmarks.table import CONSOLE, cells, markdown, show
from tests.models.agreement import Agreement


def make_row(ours: tuple[float, ...], theirs: tuple[float, ...], limit: float, kind: Kind = Kind.MOST) -> Row:
    bar = Bar(limit, is_ratio=True, kind=kind)
    return Row(what="a run", unit="ms", samples=ours, peer="b", peer_samples=theirs, bar=bar, group="runs")


def test_a_bar_on_the_ratio_holds_for_medians_and_for_the_best() -> None:
    row = make_row((30.0, 40.0, 50.0), (2.0, 10.0, 10.0), 10)
    assert (row.ours, row.theirs, row.ratio, row.best_ratio) == (40, 10, 4, 15)
    assert row.is_met is False
    assert make_row((30.0, 40.0, 50.0), (2.0, 10.0, 10.0), 15).is_met is True
    assert make_row((40.0, 90.0, 90.0), (10.0, 10.0, 20.0), 8).is_met is False


@pytest.mark.parametrize(("value", "is_met"), [(3.0, True), (4.0, True), (4.1, False), (math.nan, False)])
def test_a_bar_on_the_value(value: float, is_met: bool) -> None:
    assert Row(what="a", unit="s", samples=(value,), bar=Bar(4.0)).is_met is is_met


def test_bars_from_below_on_both_sides_and_none() -> None:
    assert make_row((8.0,), (10.0,), 0.8, Kind.LEAST).is_met is True
    assert make_row((7.9,), (10.0,), 0.8, Kind.LEAST).is_met is False
    assert [make_row((x,), (10.0,), 0.15, Kind.WITHIN).is_met for x in (8.4, 8.6, 11.4, 11.6)] == [0, 1, 1, 0]
    assert Row(what="a", unit="s", samples=(4.0,)).is_met is None
    assert Row(what="a", unit="x", samples=(4.0,), peer_samples=(0.0,), bar=Bar(9, is_ratio=True)).is_met is False


def test_earlier_runs_of_the_same_commit_give_the_spread(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "found.json"
    other = Row(what="other", unit="s", samples=(1.0,), group="others")
    assert record.load(file, "c1", "cpu") == []
    before: list[Row] = []
    for value in (10.0, 12.0, 11.0):
        rows = record.merged(before, [make_row((value,), (5.0,), 3), *([] if before else [other])], ["others", "runs"])
        record.save(file, "c1", {"processor": "cpu"}, rows)
        before = record.load(file, "c1", "cpu")
    assert [row.what for row in before] == ["other", "a run"]  # kept, though it was run the first time only
    assert before[0].spread is None
    assert (before[1].ours, before[1].earlier) == (11, (10, 12))
    assert before[1].spread == pytest.approx(2 / 11)
    assert before[1].bar == Bar(3, is_ratio=True)
    assert cells(before[1])[-1] == "18% of 3"
    for commit, processor in (("c2", "cpu"), ("c1", "another"), ("unknown", "cpu")):
        assert record.load(file, commit, processor) == []


def test_a_commit_is_told_with_its_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.commit() == "unknown"
    code = tmp_path / "code.py"
    code.write_text("1")
    for words in (["init"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-m", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    first = machine.commit()
    assert len(first) == 12
    code.write_text("2")
    assert machine.commit().startswith(f"{first} with changes ")


def test_groups_have_names_of_their_own_and_tasks_that_can_be_sent() -> None:
    assert len({group.name for group in GROUPS}) == len(GROUPS)
    for group in GROUPS:
        assert [pickle.loads(pickle.dumps(task)).func for task in group.tasks if isinstance(task, partial)] == [
            task.func for task in group.tasks if isinstance(task, partial)
        ]
    text = (publish.ROOT / "BENCHMARKS.md").read_text()
    assert [group.name for group in GROUPS if f"--only {group.name}`" not in text] == []


def rows_of_a_task(name: str) -> list[Row]:
    return [Row(what=name, unit="", samples=(1.0,))]


@pytest.mark.slow
@pytest.mark.parametrize("is_timed", [False, True])
def test_a_group_is_run_in_order(is_timed: bool) -> None:
    group = Group("letters", [partial(rows_of_a_task, name) for name in "abc"], is_timed)
    assert [(row.group, row.what) for row in run(group)] == [("letters", name) for name in "abc"]


def test_what_is_not_measured_is_published_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    monkeypatch.setattr(benchmarks, "_demo", lambda: "demo")
    for file, block in (("BENCHMARKS.md", "all"), ("README.md", "demo")):
        (tmp_path / file).write_text(f"<!-- {block} -->\n<!-- /{block} -->\n")
    benchmarks.publish([Row(what="a", unit="s", samples=(1.0,), group="busy")], {"cores": "2"})
    text = (tmp_path / "BENCHMARKS.md").read_text()
    assert "| **busy** |" in text
    assert "Not measured on this commit: compile_time, run_time, " in text
    assert "demo" in (tmp_path / "README.md").read_text()


def test_the_published_table_has_every_group_or_names_it() -> None:
    text = (publish.ROOT / "BENCHMARKS.md").read_text()
    (table,) = re.findall(r"<!-- all -->\n(.*)<!-- /all -->", text, re.DOTALL)
    missing = re.findall(r"^Not measured on this commit: (.*)\.$", table, re.MULTILINE)
    named = [*re.findall(r"^\| \*\*(\w+)\*\* \|", table, re.MULTILINE), *", ".join(missing).split(", ")]
    assert sorted(filter(None, named)) == sorted(group.name for group in GROUPS)


def test_samples_are_taken_in_turns() -> None:
    called: list[str] = []
    samples = side_by_side([(lambda: called.append("a"), 1), (lambda: called.append("b"), 2)], 2)
    assert called == ["a", "b", "b", "a", "b", "b"]
    assert [len(taken) for taken in samples] == [2, 4]


def test_a_call_after_a_rest_does_not_count() -> None:
    called: list[str] = []
    samples = side_by_side([(lambda: called.append("a"), 2), (lambda: called.append("b"), 1)], 1, 1e-6)
    assert called == ["a", "a", "a", "b", "b"]
    assert [len(taken) for taken in samples] == [2, 1]


def test_the_table() -> None:
    rows = [make_row((2000.0, 2000.0), (3.0,), 10), Row(what="alone", unit="s", samples=(0.5,), group="runs")]
    with CONSOLE.capture() as captured:
        show(rows, {"cores": "2"})
    text = markdown(rows, {"cores": "2"})
    assert "| a run | 2,000 ms | 3 ms, b | 666.67 | 666.67 | at most 10x | NO |  |" in text.splitlines()
    assert "| alone | 0.50 s |  |  |  |  |  |  |" in text.splitlines()
    for shown in (captured.get(), text):
        assert "Measured on: cores 2" in shown
        assert "2,000 ms" in shown
        assert "2 rows; 0 of 1 bars are met." in shown


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
