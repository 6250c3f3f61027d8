"""The example of docs/jax.md runs as it stands there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import blocks


@pytest.mark.jax
def test_example(tmp_path: Path) -> None:
    (example,) = (block.text for block in blocks("docs/jax.md") if block.mark == "jax")
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "us on inf2" in done.stdout
