"""neuron-cc disassemble: the program in a NEFF as text."""

import argparse
from pathlib import Path

from tvm_neuron import neff
from tvm_neuron.cli.compiled import add_core, add_program, read_core
from tvm_neuron.cli.output import written_aside
from tvm_neuron.program import print_program

NAME = "disassemble"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a .neff, or a library (.so)")
    add_program(parser)
    add_core(parser)
    parser.add_argument("--output", metavar="FILE.txt", help="write it into a file instead of printing it")


def run(options: argparse.Namespace) -> None:
    """Prints the text form.

    Raises:
        NeffError: the file can't be read, or the output not be written.
    """
    text = print_program(neff.read(read_core(options)).program)
    if options.output:
        with written_aside(Path(options.output)) as made:
            neff.write_aside(made, [text.encode()])
    else:
        print(text, end="")
