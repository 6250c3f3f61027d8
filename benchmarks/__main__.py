"""`python -m benchmarks`: all measurements, one table; `--all` adds the nine networks on both modelled chips."""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks import compile_time, cpu_parts, machine, networks, run_time
from benchmarks.publish import ROOT, replace_block
from benchmarks.row import Row
from benchmarks.table import CONSOLE, show, show_modelled
from tvm_neuron.cli.progress import stages


def main() -> None:
    """Measures, prints, writes JSON, and publishes if asked to."""
    options = _parser().parse_args()
    facts = machine.describe()
    rows: list[Row] = []
    with stages("bench") as on_stage:
        for script in (compile_time, run_time):
            on_stage(script.__name__.partition(".")[2])
            rows += script.measure(options.repeats) if options.repeats else script.measure()
        on_stage("CPU parts")
        on_cpu = cpu_parts.measure(options.repeats) if options.repeats else cpu_parts.measure()
    show(rows, facts)
    measured = CONSOLE.export_text()
    show(on_cpu, facts)
    cpu_table = CONSOLE.export_text()
    modelled = show_modelled(networks.measure()) if options.all or options.publish else []
    if options.publish:
        replace_block("BENCHMARKS.md", "measured", measured)
        replace_block("BENCHMARKS.md", "cpu parts", cpu_table)
        replace_block("BENCHMARKS.md", "modelled", CONSOLE.export_text())
        replace_block("README.md", "demo", _demo())
    rows += on_cpu
    taken = {"date": time.strftime("%Y-%m-%d"), "machine": facts}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps(
            taken | {"measured": [row.to_json() for row in rows], "modelled": [*map(asdict, modelled)]}, indent=2
        )
    )
    print(f"written to {options.json}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what BENCHMARKS.md publishes.")
    parser.add_argument("--all", action="store_true", help="also the nine light networks on both modelled chips")
    parser.add_argument("--repeats", type=int, help="runs of each measurement (3 of compilations, 9 of runs)")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), metavar="FILE", help="%(default)s")
    parser.add_argument("--publish", action="store_true", help="--all, and write BENCHMARKS.md and the README's demo")
    return parser


def _demo() -> str:
    """What the demo prints."""
    return subprocess.run(
        [sys.executable, ROOT / "demo" / "resnet50.py"], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
