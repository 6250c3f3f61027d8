"""The demo does what the README says, and fails if the outputs disagree."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

pytestmark = pytest.mark.slow
DEMO = ROOT / "demo" / "resnet50.py"
PRINTED = (
    "176 neuroncore", " us on inf1 (", "cycles", "PE utilisation", "DRAM traffic", "53 Conv", "On the CPU: nothing",
    "Where the time went", "Top 5 of the first image", "relative L2 error against onnxruntime in float32: 1.",
    "page for a browser: build/resnet50.html",
)  # fmt: skip


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT)


def test_it_agrees_and_prints_all() -> None:
    done = run(DEMO)
    assert done.returncode == 0, done.stderr
    assert "<h2>What to look at first</h2>" in (ROOT / "build" / "resnet50.html").read_text("utf-8")
    assert [text for text in PRINTED if text not in done.stdout] == []
    assert all(line.startswith("demo: ") for line in done.stderr.splitlines())  # progress: plain lines, no terminal


def test_it_fails_if_the_outputs_disagree() -> None:
    done = run(
        "-c", "import sys; sys.path.insert(0, 'demo'); import resnet50 as d; d.BOUND = 1e-3; sys.exit(d.main([]))"
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("demo: error: the output is off by 1.")
    assert done.stderr.splitlines()[-1].endswith("%, more than 0.1%")
