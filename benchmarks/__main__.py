"""`python -m benchmarks`: all measurements, one table; `--all` adds the nine networks on both modelled chips."""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks import compile_time, machine, networks, run_time
from benchmarks.row import Row
from benchmarks.table import show, show_modelled
from tvm_neuron.cli.progress import stages


def main() -> None:
    """Measures, prints, writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what BENCHMARKS.md publishes.")
    parser.add_argument("--all", action="store_true", help="also the nine light networks on both modelled chips")
    parser.add_argument("--repeats", type=int, help="runs of each measurement (3 of compilations, 9 of runs)")
    parser.add_argument(
        "--json", type=Path, default=Path("build/benchmarks.json"), metavar="FILE", help="(%(default)s)"
    )
    options = parser.parse_args()
    facts = machine.describe()
    rows: list[Row] = []
    with stages("bench") as on_stage:
        for script in (compile_time, run_time):
            on_stage(script.__name__.partition(".")[2])
            rows += script.measure(options.repeats) if options.repeats else script.measure()
    show(rows, facts)
    modelled = show_modelled(networks.measure()) if options.all else []
    options.json.parent.mkdir(parents=True, exist_ok=True)
    taken = {"date": time.strftime("%Y-%m-%d"), "machine": facts}
    measured = [asdict(row) | {"ratio": row.ratio, "is_met": row.is_met} for row in rows]
    options.json.write_text(
        json.dumps(taken | {"measured": measured, "modelled": [asdict(m) for m in modelled]}, indent=2)
    )
    print(f"written to {options.json}")


if __name__ == "__main__":
    main()
