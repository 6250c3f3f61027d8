"""neuron-cc report: where a compiled file's operators run, how long it takes, and where the time goes."""

import argparse
from pathlib import Path

from rich.console import Console

from tvm_neuron import neff
from tvm_neuron.cli.compiled import add_program, open_compiled, read_program
from tvm_neuron.cli.output import written_aside
from tvm_neuron.errors import NeffError, OptionError, from_extra
from tvm_neuron.profile import Part, make_report, run_of, trace_file, trace_writer
from tvm_neuron.profile.tables import render

NAME = "report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a .neff, or a library (.so)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="layers to show, slowest first (10)")
    parser.add_argument("--timeline", metavar="T", help="also write a timeline: .json or .pftrace")
    parser.add_argument("--tables", metavar="FOLDER", help="also write Parquet tables of all instructions")
    add_program(parser)


def run(options: argparse.Namespace) -> None:
    """Prints the report; nothing is run but the clock.

    Raises:
        NeuronError: a file can't be read or written, an option has no such value.
    """
    from tvm_neuron.runtime import parts, report

    if options.top < 0:
        raise OptionError(f"--top {options.top}: it is a number of layers, at least 0")
    if options.program and not (options.timeline or options.tables):
        raise OptionError("--program chooses the program for --timeline and --tables; a report is of the whole library")
    if options.timeline:
        trace_writer(options.timeline)
    if options.tables:
        with from_extra("tables", "--tables"):
            from tvm_neuron.profile.parquet.write import write_tables
    compiled = open_compiled(options.file)
    is_neff = isinstance(compiled, neff.Pipeline)
    if is_neff and options.bucket:
        raise NeffError(f"--bucket {options.bucket}: a .neff has one set of shapes; leave the option out")
    result = make_report(compiled.cores[0].placement, [compiled]) if is_neff else report(compiled, options.bucket)
    if options.timeline or options.tables:
        shown: list[Part]
        if options.program:
            shown = [neff.verified(neff.read_pipeline(read_program(options)))]
        else:
            shown = [compiled] if is_neff else parts(compiled, options.bucket)
        recorded = run_of(shown)
    if options.timeline:
        with written_aside(Path(options.timeline)) as made:
            neff.write_aside(made, [trace_file(recorded, options.timeline)])
    if options.tables:
        write_tables(recorded, result.placement, Path(options.tables))
    if options.json:
        print(result.to_json())
    else:
        Console().print(render(result, options.top))
