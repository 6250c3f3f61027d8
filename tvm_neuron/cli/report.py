"""neuron-cc report: where a compiled file's operators run, how long it takes, and where the time goes."""

import argparse
from pathlib import Path

from rich.console import Console

from tvm_neuron import neff
from tvm_neuron.cli.arrays import read_npz
from tvm_neuron.cli.compiled import add_program, read_program, report_of
from tvm_neuron.cli.output import written_aside
from tvm_neuron.errors import OptionError, from_extra
from tvm_neuron.profile import Report, run_of, trace_file, trace_writer
from tvm_neuron.profile.tables import render

NAME = "report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a .neff, or a library (.so)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="layers to show, slowest first (10)")
    parser.add_argument("--input", metavar="X.npz", help="run it with these arrays, and time its CPU parts here")
    parser.add_argument("--html", metavar="PAGE", help="also write a page with plots, which opens in any browser")
    parser.add_argument("--timeline", metavar="T", help="also write a timeline: .json or .pftrace")
    parser.add_argument("--tables", metavar="FOLDER", help="also write Parquet tables of all instructions")
    add_program(parser)


def run(options: argparse.Namespace) -> None:
    """Prints the report; nothing is run but the clock, and the library if it gets inputs.

    Raises:
        NeuronError: a file can't be read or written, an option has no such value.
    """
    if options.top < 0:
        raise OptionError(f"--top {options.top}: it is a number of layers, at least 0")
    if options.program and not (options.timeline or options.tables):
        raise OptionError("--program chooses the program for --timeline and --tables; a report is of the whole library")
    _check_extras(options)
    result = report_of(options.file, options.bucket, read_npz(options.input) if options.input else None)
    if options.timeline or options.tables:
        _write_run(options, result)
    if options.html:
        _write(options.html, result.to_html(Path(options.file).name).encode())
    if options.json:
        print(result.to_json())
    else:
        Console().print(render(result, options.top))


def _check_extras(options: argparse.Namespace) -> None:
    """Before anything is read: the extras that files need, and the format of the timeline."""
    if options.timeline:
        trace_writer(options.timeline)
    if options.tables:
        with from_extra("tables", "--tables"):
            import tvm_neuron.profile.parquet.write
    if options.html:
        with from_extra("html", "--html"):
            import tvm_neuron.profile.page.page  # noqa: F401


def _write_run(options: argparse.Namespace, result: Report) -> None:
    """The files that show one run: of the whole, or of one program."""
    chosen = [neff.read_pipeline(read_program(options))] if options.program else result.parts
    sound = [neff.verified(part) if isinstance(part, neff.Pipeline) else part for part in chosen]
    run = run_of(sound, with_host=not options.program)
    if options.timeline:
        _write(options.timeline, trace_file(run, options.timeline))
    if options.tables:
        from tvm_neuron.profile.parquet.write import write_tables

        write_tables(run, result.placement, Path(options.tables))


def _write(name: str, data: bytes) -> None:
    with written_aside(Path(name)) as made:
        neff.write_aside(made, [data])
