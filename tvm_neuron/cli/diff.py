"""neuron-cc diff: what differs between two compiled files: placement, operators' times, traffic, memory, instructions.

Exit codes: 0 nothing that matters differs; 3 something does; else as of every command.

Example:
  neuron-cc diff before.so after.so --tolerance 1
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tvm_neuron import neff
from tvm_neuron.cli.compiled import report_of
from tvm_neuron.cli.output import written_aside
from tvm_neuron.errors import OptionError
from tvm_neuron.profile.difference import TITLES, Difference, compare, shown

NAME = "diff"
DIFFERS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("before", metavar="BEFORE", help="a .neff, or a library (.so)")
    parser.add_argument("after", metavar="AFTER", help="another one")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, metavar="PERCENT", help="changes of numbers that don't matter (0)"
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="rows to show of each kind (10)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--html", metavar="PAGE", help="also write a page")


def run(options: argparse.Namespace) -> int:
    """Prints the differences; nothing is run but the clock.

    Raises:
        NeuronError: a file can't be read or written, an option has no such value.
    """
    if not 0 <= options.tolerance < 100:
        raise OptionError(f"--tolerance {options.tolerance:g}: it is a percentage, from 0 to less than 100")
    if options.top < 0:
        raise OptionError(f"--top {options.top}: it is a number of rows, at least 0")
    before, after = report_of(options.before), report_of(options.after)
    found = compare(before, after, (options.before, options.after), options.tolerance / 100)
    if options.html:
        with written_aside(Path(options.html)) as made:
            neff.write_aside(made, [found.to_html().encode()])
    if options.json:
        print(found.to_json())
    else:
        _print(found, options.top)
    return DIFFERS if found.changes else 0


def _print(found: Difference, top: int) -> None:
    console = Console()
    if not found.changes:
        console.print("nothing that matters differs")
    for group, title in TITLES.items():
        rows = found.of(group)
        if not rows:
            continue
        more = f": {top} of {len(rows)}" if len(rows) > top else ""
        table = Table(title=f"{title}{more}", title_justify="left")
        for name in ("", "before", "after", "ratio"):
            table.add_column(name, justify="right" if name else "left", overflow="fold")
        for row in rows[:top]:
            ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
            table.add_row(Text(row.name), Text(shown(row.before)), Text(shown(row.after)), ratio)
        console.print(table)
