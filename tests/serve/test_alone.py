"""KServe's messages have the names of tritonclient's; one process can't have both: these tests get their own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.serve


def test_in_a_process_without_tritonclient() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-m", "serve", str(Path(__file__).with_name("alone.py"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
