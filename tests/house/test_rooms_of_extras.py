"""`.ci/run` looks for tests that need an extra in each room that has some."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
RUN = (TESTS.parent / ".ci" / "run").read_text()


@pytest.mark.parametrize("extra", ["torch", "jax", "explorer", "browser", "sweep", "serve", "tensorflow"])
def test_each_is_named(extra: str) -> None:
    files = (path for path in TESTS.rglob("test_*.py") if f"pytest.mark.{extra}" in path.read_text())
    rooms = {path.relative_to(TESTS).parts[0] for path in files}
    lines = [line for line in RUN.replace("$also", "or browser").splitlines() if "pytest -m" in line]
    (line,) = (line for line in lines if extra in line.partition(" tests/")[0])
    assert rooms
    assert rooms <= set(re.findall(r"tests/(\w+)", line))
