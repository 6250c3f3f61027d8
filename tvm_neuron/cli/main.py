"""neuron-cc: finds the command, runs it, and turns every expected failure into one line.

Exit codes: 0 done; 1 refused, with the reason on stderr; 2 wrong use of the command line; 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import shtab

from tvm_neuron import neff
from tvm_neuron.cli import check_model, disassemble, info, list_operators, report, run, throughput
from tvm_neuron.cli import compile as compile_command
from tvm_neuron.errors import NeuronError
from tvm_neuron.runtime import VERSION

COMMANDS = (check_model, compile_command, run, report, throughput, info, disassemble, list_operators)
_EPILOG = """\
exit codes: 0 done; 1 refused, with the reason on stderr; 2 wrong use of the command line; 130 interrupted

first steps:
  neuron-cc check-model model.onnx            where would its operators run, and why?
  neuron-cc compile model.onnx --output m.so  compile it
  neuron-cc report m.so                       how long does it take, and where does the time go?
  neuron-cc run m.so --input x.npz --output y.npz

completion of words by the shell: eval "$(neuron-cc --print-completion bash)" (or zsh, tcsh)
"""



def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except NeuronError as error:
        print(f"neuron-cc {options.command}: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _interrupted(options.command)
    except BrokenPipeError:  # the reader of our output has gone, as in `neuron-cc disassemble r.neff | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RuntimeError as error:
        if _came_through_tvm(error):
            return _interrupted(options.command)
        raise
    return 0


def _interrupted(command: str) -> int:
    print(f"neuron-cc {command}: interrupted", file=sys.stderr)
    return 130


def _came_through_tvm(error: RuntimeError) -> bool:
    """Whether it was a KeyboardInterrupt in a function that TVM called: of that, TVM makes an empty RuntimeError."""
    return type(error) is RuntimeError and not str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="neuron-cc", description="Compile models for NeuronCores; run and inspect them.", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    shtab.add_argument_to(parser, "--print-completion", help="print a script that lets a shell complete words")
    parser.add_argument("-V", "--version", action="version", version=_versions())
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        summary, _, more = (command.__doc__ or "").strip().partition("\n")
        summary = summary.partition(": ")[2]
        own = commands.add_parser(
            command.NAME, help=summary, description=summary, epilog=more.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return parser


def _versions() -> str:
    return f"neuron-cc {VERSION} (NEFF {neff.MAJOR}.{neff.MINOR}, TVM {_version('apache-tvm')})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    sys.exit(main())
