"""Every tutorial runs, in a process of its own as a reader runs it; its own assertions are the test."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tutorials"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def test_they_are_numbered() -> None:
    assert [int(script.name.partition("_")[0]) for script in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))
    assert SCRIPTS


QUICK = ("01_first_network",)  # the others are run by `make docs`, too


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_is_a_page(script: Path) -> None:
    title, line, *_ = (ast.get_docstring(ast.parse(script.read_text())) or "").splitlines()
    assert line == "=" * len(title)
    heads = re.findall(r"^# %%\n# (\d+)\. (.+)\n# (-+)$", script.read_text(), re.MULTILINE)
    heads += re.findall(r"^#\n# (\d+)\. (.+)\n# (-+)$", script.read_text(), re.MULTILINE)
    assert sorted(int(number) for number, *_ in heads) == list(range(1, len(heads) + 1))
    assert all(len(f"{number}. {head}") == len(under) for number, head, under in heads)


@pytest.mark.parametrize(
    "script",
    [pytest.param(each, id=each.stem, marks=() if each.stem in QUICK else pytest.mark.slow) for each in SCRIPTS],
)
def test_it_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing is left in the reader's folder
