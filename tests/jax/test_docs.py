"""The examples of docs/jax.md run as they stand there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import blocks

EXAMPLES = [block.text for block in blocks("docs/jax.md") if block.mark == "jax"]


@pytest.mark.jax
@pytest.mark.parametrize(("number", "said"), [(0, "us on inf2"), (1, "all_reduce of 4 cores: 6144 bytes sent by each")])
def test_example(number: int, said: str, tmp_path: Path) -> None:
    assert len(EXAMPLES) == 2
    (tmp_path / "example.py").write_text(EXAMPLES[number])
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
