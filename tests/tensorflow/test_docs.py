"""The example of docs/tensorflow.md runs as it stands there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import blocks


@pytest.mark.tensorflow
@pytest.mark.parametrize("number", range(len([block for block in blocks("docs/tensorflow.md") if block.mark])))
def test_example(number: int, tmp_path: Path) -> None:
    example = [block for block in blocks("docs/tensorflow.md") if block.mark == "tensorflow"][number]
    (tmp_path / "example.py").write_text(example.text)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "us on inf2" in done.stdout
