"""neuron-cc sweep: compiles and times models with every combination of chips, batches, options and sizes of the chip.

Example:
  neuron-cc sweep --models a.onnx b.onnx --chip inf2 --vary sbuf_bytes_per_partition=98304,196608 --vary batch=1,4,8 \\
      --vary optlevel

Each point is written when it is done, and a second run with the same --output compiles those that are not there. What
can't be compiled is a row with its reason. Nothing is run but the clock.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.cli.progress import OnStage, stages
from tvm_neuron.errors import OptionError

if TYPE_CHECKING:
    from tvm_neuron.sweep.run import Progress

NAME = "sweep"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--models", nargs="+", required=True, metavar="MODEL", help=".onnx files")
    parser.add_argument("--chip", nargs="+", default=["inf1"], metavar="CHIP", help="inf1 (default), ..., or a .json")
    parser.add_argument(
        "--vary", action="append", default=[], metavar="NAME=VALUES",
        help="batch=1,4,8; an option of compiling, as optlevel (all its values) or fp32_cast=all,none; a quantity of "
        "the chip, as sbuf_bytes_per_partition=98304,196608; any number of times. A name that doesn't exist is told "
        "with those that do",
    )  # fmt: skip
    parser.add_argument("--io-config", metavar="JSON", help="sizes, dtypes and values of inputs, as for compile")
    parser.add_argument(
        "--output", default="sweep", metavar="FOLDER", help="where points.jsonl, sweep.parquet, sweep.html go (sweep)"
    )
    parser.add_argument("--processes", type=int, metavar="N", help="points to compile at once (one for each core)")
    parser.add_argument("--address", default="", help="a cluster of Ray to compile on, as 'auto' or HOST:PORT")
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")


def run(options: argparse.Namespace) -> None:
    """Compiles what is not there yet, and prints the best points of each model.

    Raises:
        NeuronError: before anything is compiled: a file, chip, name or value that does not exist, no such cluster, an
            extra that is not installed; at the end: the folder can't be written.
    """
    if options.processes is not None and options.processes < 1:
        raise OptionError(f"--processes {options.processes}: it must be at least 1")
    from tvm_neuron import sweep
    from tvm_neuron.sweep.choices import parse

    vary: dict[str, Any] = {}
    for name, values in map(parse, options.vary):
        if name in vary:
            raise OptionError(f"--vary {name} is given twice: give all its values at once, --vary {name}=VALUE,VALUE")
        vary[name] = values
    folder = Path(options.output)
    with stages(NAME, is_quiet=options.json) as tell:
        frame = sweep.run(
            options.models, options.chip, vary, folder=folder, inputs=read_io_config(options.io_config),
            processes=options.processes, address=options.address,
            on_point=lambda progress: _tell(progress, list(vary), tell),
        )  # fmt: skip
    if options.json:
        print(frame.to_json(orient="records", indent=2))
    else:
        _print(frame, list(vary), folder)


def _tell(progress: "Progress", varied: list[str], tell: OnStage) -> None:
    row = progress.row
    what = ", ".join([row["model"], row["chip"], *(f"{name} = {row[name]}" for name in varied)])
    us = row.get("latency_us")
    result = row["outcome"] if us is None else f"{us:,.1f} us"
    tell(f"{progress.done} of {progress.total} points, about {progress.seconds_left:.0f} s left; {what}: {result}")


def _print(frame: Any, varied: list[str], folder: Path) -> None:
    """How many points became what, and the best of each model."""
    from tvm_neuron.sweep.pareto import best
    from tvm_neuron.sweep.run import PAGE, TABLE

    console = Console()
    for model, rows in best(frame):
        table = Table(title=Text(f"{model}: the best points"), title_justify="left")
        for name in ("chip", *varied, "latency us", "us a row", "memory MB", "area mm2"):
            table.add_column(name, justify="right" if " " in name else "left", overflow="fold")
        for row in rows.sort_values("latency_us").to_dict("records"):
            numbers = (row["latency_us"], row["us_per_row"], row["memory_bytes"] / 1e6, row["area_mm2"])
            chosen = (row["chip"], *(row[name] for name in varied))
            table.add_row(*(Text(str(value)) for value in chosen), *(f"{value:,.1f}" for value in numbers))
        console.print(table)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in frame["outcome"].value_counts().items())
    console.print(Text(f"{len(frame)} points: {counts}; {folder / PAGE} and {folder / TABLE}"))
