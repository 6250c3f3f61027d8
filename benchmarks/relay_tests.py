"""TVM 0.18's own tests of Relay for the target neuron: what passes, is refused by name, fails, or is wrong.

`python -m benchmarks.relay_tests --tvm CHECKOUT [NAME ...] [--json FILE] [--show]`: all files, or those whose names
contain one of NAME. Each is copied with one import added and its target changed, and run by pytest with
`fp32_cast="none"`; what it needs beside (SciPy, Torch, onnxruntime) is this environment's.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

LEVELS = tuple(f"relay/test_op_level{level}.py" for level in (1, 2, 3, 4, 5, 6, 10))
OTHERS = ("relay/test_external_codegen.py", "relay/test_pass_partition_graph.py", "frontend/onnx/test_forward.py")
RESULTS = ("passed", "refused", "failed", "wrong", "skipped")
_IMPORT = "import tvm_neuron.relay\n"
_TARGET = re.compile(r"""(["'])(llvm|c)\1""")
_LEAST = 0.8
_LEAST_ONNX = 120


def run(tests: Path, name: str) -> list[dict[str, str]]:
    """What becomes of the cases of one file below `tests`: a name, a result and a reason each."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copied = _copy(tests, name, root)
        record = root / "record.jsonl"
        record.touch()
        paths = [str(Path(__file__).parents[1]), str(root), str(copied.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths), "RELAY_TESTS_RECORD": str(record), "NEURON_CC_CACHE": "off",
            "NEURON_CC_BUNDLES": str(root / "bundles"),
        }  # fmt: skip
        command = [
            sys.executable, "-m", "pytest", "-p", "benchmarks.relay_checks.plugin", "--noconftest", "-c", os.devnull,
            "--rootdir", str(root), "-q", "-p", "no:cacheprovider", "--tb=line", str(copied),
        ]  # fmt: skip
        subprocess.run(command, env=environment, cwd=copied.parent, stdout=sys.stderr, check=False)
        return [json.loads(line) for line in record.read_text().splitlines()]


def _copy(tests: Path, name: str, root: Path) -> Path:
    """The file with the import and the target, beside the helpers that it imports; the helpers' target changed, too."""
    for helper in [*(tests / "relay/utils").glob("*.py"), tests / name]:
        place = root / helper.relative_to(tests)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_IMPORT + _TARGET.sub('"neuron"', helper.read_text()))
    return root / name


def show(found: dict[str, list[dict[str, str]]], with_reasons: bool) -> None:
    """A table of counts, and the cases that did not pass if they are asked for."""
    console = Console(width=160)
    table = Table("file", *RESULTS, "bar")
    for name, cases in found.items():
        counts = Counter(case["result"] for case in cases)
        table.add_row(name, *(str(counts[result]) for result in RESULTS), _bar(name, counts))
    for case in [case for cases in found.values() for case in cases]:
        if with_reasons and case["result"] not in ("passed", "skipped"):
            console.print(f"{case['result']:8} {case['name'].rpartition('/')[2]}: {case['reason']}", markup=False)
    console.print(table)


def _bar(name: str, counts: Counter[str]) -> str:
    """What the file has to reach, and whether it does: nothing may be wrong."""
    asked = sum(counts.values()) - counts["skipped"]
    least = _LEAST * asked if name in LEVELS else _LEAST_ONNX if "onnx" in name else 0
    is_met = counts["passed"] >= least and not counts["wrong"]
    return f"at least {least:.0f}: {'met' if is_met else 'missed'}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the files, prints, and writes JSON if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relay_tests", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--tvm", type=Path, required=True, metavar="CHECKOUT", help="TVM's repository at v0.18.0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="also each case that does not pass, and why")
    options = parser.parse_args(arguments)
    tests = options.tvm / "tests/python"
    if not tests.is_dir():
        parser.error(f"{tests} is no folder: --tvm is a checkout of TVM at v0.18.0")
    chosen = [name for name in LEVELS + OTHERS if not options.names or any(each in name for each in options.names)]
    found = {}
    for name in chosen:
        found[name] = run(tests, name)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1))
    show(found, options.show)


if __name__ == "__main__":
    main()
