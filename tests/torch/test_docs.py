"""The examples of docs/pytorch.md run as they stand there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import blocks


@pytest.mark.torch
def test_examples(tmp_path: Path) -> None:
    examples = [block.text for block in blocks("docs/pytorch.md") if block.mark == "torch"]
    assert len(examples) == 3
    for number, example in enumerate(examples):
        file = tmp_path / f"{number}.py"
        file.write_text(example)
        done = subprocess.run([sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
        assert done.returncode == 0, done.stderr
        assert "us on" in done.stdout or "neuroncore" in done.stdout
