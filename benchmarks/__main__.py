"""`python -m benchmarks`: all measurements as one table, in about half an hour on two idle cores.

Results are added to a file as long as commit and machine stay the same: `--only` runs single groups, and of what was
run before the table tells how far the runs lie apart.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks import machine, record
from benchmarks.groups import GROUPS, run
from benchmarks.publish import ROOT, replace_block, replace_table
from benchmarks.row import Row
from benchmarks.table import markdown, show
from tvm_neuron.cli.progress import stages

NAMES = [group.name for group in GROUPS]


def main() -> None:
    """Measures, writes JSON after each group, prints, and publishes if asked to."""
    options = _parser().parse_args()
    facts = machine.describe()
    commit, rows = machine.commit(), []
    earlier = record.load(options.json, commit, facts["processor"])
    known = earlier
    with stages("bench") as on_stage:
        for group in GROUPS:
            if not options.only or group.name in options.only:
                on_stage(group.name)
                rows += run(group)
                known = record.merged(earlier, rows, NAMES)
                record.save(options.json, commit, facts, known)
    show(known, facts | {"commit": commit})
    print(f"written to {options.json}")
    if options.publish:
        publish(known, facts | {"commit": commit})


def publish(rows: list[Row], facts: dict[str, str]) -> None:
    """Writes the table into BENCHMARKS.md, and what the demo prints into the README."""
    measured = {row.group for row in rows}
    missing = [name for name in NAMES if name not in measured]
    lack = f"\n\nNot measured on this commit: {', '.join(missing)}." if missing else ""
    replace_table("BENCHMARKS.md", "all", markdown(rows, facts) + lack)
    replace_block("README.md", "demo", _demo())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--publish", action="store_true", help="also write BENCHMARKS.md and the README's demo")
    return parser


def _demo() -> str:
    """What the demo prints."""
    return subprocess.run(
        [sys.executable, ROOT / "demo" / "resnet50.py"], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
