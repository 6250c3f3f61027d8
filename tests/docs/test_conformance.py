"""The runner of onnx's backend suite tells right, refused and, given a wrong expectation, wrong."""

import faulthandler
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import conformance
from benchmarks.backend_cases import select

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")  # making onnx's cases warns of overflows that they mean


@pytest.mark.slow
def test_right_and_refused() -> None:
    cases = select(["test_relu", "test_image_decoder_decode_bmp_rgb"])
    found = {case.name: conformance.outcome(case) for case in cases}
    assert (found["test_relu"].result, found["test_relu"].on_cpu) == ("passed", 0)
    assert found["test_image_decoder_decode_bmp_rgb"].result == "refused"
    assert "ImageDecoder" in found["test_image_decoder_decode_bmp_rgb"].reason


@pytest.mark.slow
def test_wrong() -> None:
    (case,) = (case for case in select(["test_sigmoid"]) if case.name == "test_sigmoid")
    inputs, outputs = case.data_sets[0]
    changed = replace(case, data_sets=[(inputs, [np.asarray(outputs[0]) + 0.25])])
    outcome = conformance.outcome(changed)
    assert outcome.result == "wrong"
    assert "differs by up to 0.2" in outcome.reason


def test_a_bias_read_in_parts_stays_on_the_core() -> None:
    """It is a single row, of which the second half would have to be shifted by five partitions."""
    (case,) = (case for case in select(["test_simple_rnn_with_initial_bias"]))
    found = conformance.outcome(case)
    assert (found.result, found.on_cpu) == ("passed", 0)


@pytest.mark.slow
def test_the_whole_suite(tmp_path: Path) -> None:
    """Nothing is wrong, crashes or hangs, and the README has the numbers of those that pass and where."""
    faulthandler.cancel_dump_traceback_later()  # which is for single cases; the suite has an hour
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.conformance", "--json", str(tmp_path / "found.json")]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=3600)
    found = json.loads((tmp_path / "found.json").read_text())
    counts = Counter(each["result"] for each in found)
    assert set(counts) == {"passed", "refused"}, [each for each in found if each["result"] not in ("passed", "refused")]
    passed = [each for each in found if each["result"] == "passed"]
    on_core = sum(each["on_cpu"] == 0 for each in passed)
    given = sum(bool(each["given"]) for each in passed)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{len(passed):,} of the {len(found):,} cases pass ({on_core:,} of them wholly on the NeuronCore" in readme
    assert f"for {given:,} a shape or a value that shapes depend on has to be given" in readme
    unnamed = [each for each in found if each["result"] == "refused" and not each["reason"].strip()]
    assert not unnamed
