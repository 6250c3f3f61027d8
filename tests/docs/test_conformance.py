"""The runner of onnx's backend suite tells right, refused and, given a wrong expectation, wrong."""

import faulthandler
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import conformance
from benchmarks.backend_cases import select

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "tests" / "golden" / "conformance.txt"
PARTLY, GIVEN = "partly on the CPU", "with shapes or values given"
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


@pytest.mark.slow
def test_a_bias_read_in_parts_stays_on_the_core() -> None:
    """It is a single row, of which the second half would have to be shifted by five partitions."""
    (case,) = (case for case in select(["test_simple_rnn_with_initial_bias"]))
    found = conformance.outcome(case)
    assert (found.result, found.on_cpu) == ("passed", 0)


def run(every: int, folder: Path) -> dict[str, str]:
    """Each `every`-th case: `passed`, or what else there is to say of it."""
    faulthandler.cancel_dump_traceback_later()  # which is for single cases; the suite has an hour
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.conformance", "--every", str(every), "--json"]
    subprocess.run([*command, folder / "found.json"], check=True, cwd=ROOT, capture_output=True, timeout=3600)
    found = {}
    for each in json.loads((folder / "found.json").read_text()):
        assert each["result"] in ("passed", "refused"), each
        assert each["result"] == "passed" or each["reason"].strip(), each
        said = each["result"], *([PARTLY] if each["on_cpu"] > 0 else []), *([GIVEN] if each["given"] else [])
        found[each["name"]] = ", ".join(said)
    return found


def known() -> dict[str, str]:
    """What each case was found to be: most pass, wholly on the core, and are not in the golden file, but counted."""
    return dict(line.split(": ") for line in LISTED.read_text().splitlines()[1:])


def listed(found: dict[str, str]) -> str:
    others = sorted(f"{name}: {said}" for name, said in found.items() if said != "passed")
    return "\n".join([f"{len(found):,} cases, of which those not listed passed, wholly on the NeuronCore", *others, ""])


def test_the_readme_has_the_numbers() -> None:
    """Of those that pass and where."""
    count, said = LISTED.read_text().split(maxsplit=1)[0], [f"{each}," for each in known().values()]
    passed = [each for each in said if each.startswith("passed,")]
    refused = len(said) - len(passed)
    all_passed = int(count.replace(",", "")) - refused
    on_core = all_passed - sum(PARTLY in each for each in passed)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{all_passed:,} of the {count} cases pass ({on_core:,} of them wholly on the NeuronCore" in readme
    given = sum(GIVEN in each for each in passed)
    assert f"for {given:,} a shape or a value that shapes depend on has to be given" in readme
    assert f"and {refused} are refused by name" in readme


@pytest.mark.slow
def test_a_part_of_the_suite(tmp_path: Path) -> None:
    """Nothing is wrong, crashes or hangs, and each case is what the golden file says."""
    before = known()
    differ = {name: said for name, said in run(16, tmp_path).items() if said != before.get(name, "passed")}
    assert not differ


@pytest.mark.many
def test_the_whole_suite(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    golden(LISTED.name, listed(run(1, tmp_path)))
