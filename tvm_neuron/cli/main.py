"""neuron-cc: finds the command, runs it, and turns every expected failure into one line.

Exit codes: 0 done; 1 refused, with the reason on stderr; 2 wrong use of the command line; 3 files differ (`diff`), or
numbers by more than roundings explain (`compare`); 130 interrupted.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import shtab

from tvm_neuron import neff
from tvm_neuron.cli import (
    check_model,
    chips,
    compare,
    diff,
    disassemble,
    explain,
    info,
    list_operators,
    replay,
    report,
    run,
    serve,
    sweep,
    throughput,
)
from tvm_neuron.cli import compile as compile_command
from tvm_neuron.cli.interrupt import take_over, too_late
from tvm_neuron.cli.log import print_warning, warnings_to
from tvm_neuron.cli.memory import end_quickly
from tvm_neuron.cli.output import check_apart
from tvm_neuron.errors import InternalError, NeuronError, ProgramError, internal_error
from tvm_neuron.runtime import VERSION

COMMANDS = (
    check_model, compile_command, run, report, diff, compare, chips, throughput, sweep, serve, info, disassemble,
    list_operators, explain, replay,
)  # fmt: skip
_EPILOG = """\
exit codes: 0 done; 1 refused, with the reason on stderr; 2 wrong use of the command line; 3 files differ (diff),
or numbers by more than roundings explain (compare); 130 interrupted

first steps:
  neuron-cc check-model model.onnx            where would its operators run, and why?
  neuron-cc compile model.onnx --output m.so  compile it
  neuron-cc report m.so                       how long does it take, and where does the time go?
  neuron-cc run m.so --input x.npz --output y.npz

completion of words by the shell: eval "$(neuron-cc --print-completion bash)" (or zsh, tcsh)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit code."""
    end_quickly()
    options = _parser().parse_args(arguments)
    try:
        with warnings_to(partial(print_warning, options.command)):
            check_apart(options)
            code: int = options.run(options) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:  # in a process of somebody else's: see `interrupt`
        print(f"neuron-cc {options.command}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _failed(options, error)
    return code


def _failed(options: argparse.Namespace, error: Exception) -> int:
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone, as in `neuron-cc report r.neff | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    made_here = options.command == compile_command.NAME and isinstance(error, ProgramError)
    if isinstance(error, NeuronError) and not isinstance(error, InternalError) and not made_here:
        print(f"neuron-cc {options.command}: error {error.code}: {_shown(error)}", file=sys.stderr)
        return 1
    return _internal(options, error)


def _shown(error: NeuronError) -> str:
    """Its message; names in it are those of a file, which must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in str(error))


def _internal(options: argparse.Namespace, error: Exception) -> int:
    """An error that is ours: what is needed to see it again goes into a bundle, and its user is told so."""
    message = f"{type(error).__name__}: {error}" if not isinstance(error, InternalError) else str(error)
    print(f"neuron-cc {options.command}: internal error {internal_error(error, '').code}: {message}", file=sys.stderr)
    if options.command != compile_command.NAME:
        traceback.print_exception(error)
        return 1
    try:
        path = getattr(error, "bundle", "") or compile_command.write_bundle(options, error)
    except Exception as failure:
        print(f"neuron-cc: no bundle could be written: {failure}", file=sys.stderr)
        traceback.print_exception(error)
        return 1
    weights = "with" if options.bundle_weights else "without"
    print(
        f"neuron-cc: this is a defect of the compiler, not of your model. {path} holds what is needed to see it again "
        f"(the model {weights} its weights, versions, the traceback): `neuron-cc replay {path}`; please report it",
        file=sys.stderr,
    )
    return 1


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


def run_process() -> None:
    """`main` in a process of its own, which Ctrl-C ends."""
    take_over()
    code = main()
    too_late()
    sys.exit(code)


if __name__ == "__main__":
    run_process()
