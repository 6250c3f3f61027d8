"""Runs one script in this process and writes what came of it: `python -m benchmarks.gallery.run NAME SCRIPT FOUND`."""

import json
import runpy
import sys
import traceback
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.gallery import changes, downloads, packages
from benchmarks.gallery.checks import CHECKS, PRECISE, Check
from benchmarks.gallery.commands import COMMANDS

_LONGEST = 200


def main(name: str, script: str, found: str) -> None:
    """One script."""
    import tvm_neuron.build
    from tvm_neuron.build import BuildOptions, build_options

    placed: list[Any] = []
    describe = tvm_neuron.build.describe

    def noting(parts: Any, options: Any) -> Any:
        placed.extend(parts.placements)
        return describe(parts, options)

    tvm_neuron.build.describe = noting
    source = COMMANDS[name](Path(script).read_text()) if name in COMMANDS else Path(script).read_text()
    downloads.install(source)
    Path("script.py").write_text(changes.changed(name, source))
    sys.argv = [script]
    sys.path.insert(0, str(Path.cwd()))
    sys.path += [str(parent / "tests/python/relay") for parent in Path(script).parents]  # of which one takes a function
    check = CHECKS.get(name, Check("its own assertions" if "assert" in source else "nothing"))
    precise = BuildOptions(fp32_cast="none", device="neuron/inf2") if name in PRECISE else None
    row = {"to its end": "yes", "compared with": "", "error": "", "on the core": "", "first failure": ""}
    try:
        stood_in = packages.install(name)
        with build_options(precise) if precise else nullcontext():
            values = runpy.run_path("script.py", {"__file__": script}, "__main__")
        row["compared with"] = check.reference + (" (fp32_cast none, inf2)" if precise else "")
        row["compared with"] += f"; {stood_in}" if stood_in else ""
        row["error"] = check.error(values)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        row |= {"to its end": "no", "first failure": packages.missing(error) or _told(error)}
    row["on the core"] = _where(placed)
    Path(found).write_text(json.dumps(row))


def _told(error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "script.py"]
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"line {lines[-1] if lines else '?'}: {type(error).__name__}: {text}"[:_LONGEST].replace("|", "/")


def _where(placed: list[Any]) -> str:
    """Of all operators built: how many ran on the core, and why the others did not."""
    if not placed:
        return "nothing was built"
    others = Counter(f"{row.op}: {row.reason}"[:_LONGEST] for row in placed if row.where == "cpu")
    told = "; ".join(f"{count} {reason}" for reason, count in others.most_common(3))
    return f"all {len(placed)}" if not others else f"{len(placed) - others.total()} of {len(placed)} ({told})"


if __name__ == "__main__":
    main(*sys.argv[1:])
