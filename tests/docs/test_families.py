"""CONTRIBUTING tells every schedule rule with its number of lines."""

import re

from tests.docs.markdown import ROOT

_ROW = re.compile(r"^\| \[\w+\]\((schedules/\w+\.py)\) \| (\d+) \|", re.MULTILINE)


def test_the_families_and_their_lines() -> None:
    told = {path: int(lines) for path, lines in _ROW.findall((ROOT / "CONTRIBUTING.md").read_text())}
    rules = [path for path in (ROOT / "schedules").glob("*.py") if path.name != "__init__.py"]
    assert told == {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in rules}
