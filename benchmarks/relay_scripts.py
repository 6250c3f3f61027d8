"""The scripts of TVM's gallery with one line added: `python -m benchmarks.relay_scripts --tvm CHECKOUT [NAME...]`.

CHECKOUT is a working copy of TVM 0.18 (or 0.27, for `--pages`). Each script runs in a process of its own, unmodified
but for the line `import tvm_neuron.relay`, the target, and downloads, which become local files of the same
architecture and shapes with random weights (see `benchmarks.gallery.changes`). Prints a table: ran to its end,
compared with what, what ran on the core, the first failure.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.gallery.listed import PAGES, SCRIPTS

_SECONDS = 1800
_HEAD = ("script", "to its end", "compared with", "error", "on the core", "first failure")


def main() -> None:
    """Runs the scripts and prints the table; exit status 1 where one that was named fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tvm", type=Path, required=True, metavar="CHECKOUT", help="TVM's sources")
    parser.add_argument("--pages", action="store_true", help="the pages of TVM 0.27 instead of the gallery of 0.18")
    parser.add_argument("--logs", type=Path, help="a folder for what the scripts print")
    parser.add_argument("names", nargs="*", metavar="NAME", help="some scripts only")
    options = parser.parse_args()
    known = PAGES if options.pages else SCRIPTS
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"there is no script {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    rows = []
    print(_line(_HEAD), _line(["---"] * len(_HEAD)), sep="\n", flush=True)
    for name in options.names or known:
        row = run(name, options.tvm / known[name], options.logs)
        rows.append(row)
        print(_line([name, *row.values()]), flush=True)
    done = sum(row["to its end"] == "yes" for row in rows)
    print(f"\n{done} of {len(rows)} ran to their end")
    sys.exit(done < len(rows) if options.names else 0)


def run(name: str, script: Path, logs: Path | None) -> dict[str, str]:
    """One script; what it printed goes into the folder `logs`, if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "found.json")
        command = [sys.executable, "-m", "benchmarks.gallery.run", name, str(script.absolute()), str(found)]
        paths = [str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "agg"}
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS
            )
            printed = ended.stdout + ended.stderr
        except subprocess.TimeoutExpired:
            printed = f"still running after {_SECONDS} s"
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            Path(logs, f"{name}.txt").write_text(printed)
        if found.exists():
            return dict(json.loads(found.read_text()))
    return dict.fromkeys(_HEAD[1:], "") | {"to its end": "no", "first failure": printed.strip().splitlines()[-1]}


def _line(cells: "list[str] | tuple[str, ...]") -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
