"""neuron-cc compare: where a model's numbers on the core depart from float32, and what of it roundings explain.

Exit codes: 0 roundings explain all errors; 3 they don't; else as of every command.

Examples:
  neuron-cc compare model.onnx --input x.npz
  neuron-cc compare model.onnx --target inf2 --html errors.html --what-if 'layer3*=none'

The reference is onnxruntime in float32. Each operator is compiled alone and run on exact inputs; some are also looked
at in the program up to them. The same roundings as the core's, done in NumPy, say what they explain.
"""

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tvm_neuron import neff
from tvm_neuron.cli import precision, source
from tvm_neuron.cli.arrays import read_npz
from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.cli.output import check_path, written_aside
from tvm_neuron.cli.progress import stages
from tvm_neuron.errors import OptionError, from_extra
from tvm_neuron.hw import load_device

NAME = "compare"
DEPARTS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    source.add_arguments(parser)
    parser.add_argument("--input", metavar="X.npz", help="one array for each input, by name; without it, random ones")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs (0)")
    parser.add_argument(
        "--beginnings", type=int, default=8, metavar="N", help="operators to look at in the program up to them (8)"
    )
    parser.add_argument(
        "--what-if", action="append", metavar="PATTERN=MODE",
        help="another precision to try, as in --fp32-cast-of; any number of times. Without it, the finest one for the "
        "operators at which most error enters",
    )  # fmt: skip
    parser.add_argument("--top", type=int, default=10, metavar="N", help="operators to show, most error first (10)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--html", metavar="PAGE", help="also write the page of the report, with the errors in it")
    precision.add_arguments(parser.add_argument_group("precision"))


def run(options: argparse.Namespace) -> int:
    """Prints what was found out.

    Raises:
        NeuronError: a file can't be read or written, the inputs don't fit, an option has no such value.
    """
    if options.top < 0:
        raise OptionError(f"--top {options.top}: it is a number of operators, at least 0")
    if options.beginnings < 0:
        raise OptionError(f"--beginnings {options.beginnings}: it is a number of operators, at least 0")
    if options.seed < 0:
        raise OptionError(f"--seed {options.seed}: it is a number of at least 0")
    load_device(options.target)
    source.check_framework(options)
    _check_page(options.html)
    config = read_io_config(options.io_config)
    rules = None if options.what_if is None else [dict([precision.rule(text, "--what-if")]) for text in options.what_if]
    given = None if options.input is None else read_npz(options.input)
    with stages(NAME, is_quiet=options.json) as tell:
        from tvm_neuron.build import BuildOptions
        from tvm_neuron.numerics import compare

        chosen = precision.as_build_options(options)
        found = compare(
            source.as_onnx(Path(options.model), config), given,
            BuildOptions(device=source.device_name(options.target), on_stage=tell, **chosen), seed=options.seed,
            shapes=config.shapes, values=config.values, beginnings=options.beginnings, what_if=rules,
            source=options.input or "",
        )  # fmt: skip
    if options.html:
        with written_aside(Path(options.html)) as made:
            neff.write_aside(made, [found.to_html(Path(options.model).name).encode()])
    if options.json:
        print(found.to_json())
    else:
        _print(found, options.top)
    return 0 if found.is_explained else DEPARTS


def _check_page(page: str | None) -> None:
    """Raises OptionError before the work begins if there can be no page."""
    if page is None:
        return
    with from_extra("html", "a comparison in HTML"):
        import bokeh  # noqa: F401
    try:
        check_path(page)
    except argparse.ArgumentTypeError as error:
        raise OptionError(f"--html: {error}") from error


def _print(found: Any, top: int) -> None:
    from tvm_neuron.numerics.measure import percent

    console = Console()
    console.print(f"inputs: {found.inputs}", highlight=False, markup=False, soft_wrap=True)
    for one in found.findings:
        console.print(f"- {one.text}", highlight=False, markup=False, soft_wrap=True)
    rows = [row for row in found.operators if row.where == "neuroncore"]
    rows.sort(key=lambda row: (row.is_explained, -(row.alone.error if row.alone is not None else 0.0)))
    more = f": {top} of {len(rows)}" if len(rows) > top else ""
    title = f"Relative L2 error of operators on the core, %, and in brackets what its roundings give{more}"
    table = Table(title=title, title_justify="left")
    for name in ("operator", "type", "rounds", "alone", "up to here", "explained"):
        table.add_column(name, overflow="fold")
    for row in rows[:top]:
        alone, here = _shown(row.alone, row.alone_explained), _shown(row.grown, row.grown_explained)
        table.add_row(Text(row.name), Text(row.op), row.rounds, alone, here, "yes" if row.is_explained else "no")
    console.print(table)
    if found.what_if:
        what_if = Table("--fp32-cast-of", "us", "more us", "error", title="What if", title_justify="left")
        for tried in found.what_if:
            rules = ", ".join(f"{name}={mode}" for name, mode in tried.fp32_cast_of.items())
            what_if.add_row(Text(rules), f"{tried.latency_us:,.1f}", f"{tried.more_us:+,.1f}", percent(tried.error))
        console.print(what_if)


def _shown(found: Any, roundings: Any) -> str:
    own = "" if found is None else f"{100 * found.error:.2g} " + (f"{found.stray} not finite " if found.stray else "")
    return f"{own}({100 * roundings.error:.2g})"
