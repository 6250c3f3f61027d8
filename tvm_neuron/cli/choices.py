"""What may be chosen about a build in the words of a command line, wherever they are given."""

import argparse
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NoReturn

from tvm_neuron.cli import cores, effort, host, precision, retired
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import OptionError

_SHOWN = 5  # names of operators in a warning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them, in groups."""
    precision.add_arguments(parser.add_argument_group("precision"))
    placement = parser.add_argument_group("placement")
    placement.add_argument(
        "--minimum-segment-size",
        type=int,
        metavar="N",
        help="keep parts of at least N operators on the NeuronCore; without it they are weighed by the time they gain",
    )
    placement.add_argument("--must-compile", action="store_true", help="refuse operators on the CPU in a .so too")
    host.add_arguments(placement)
    cores.add_arguments(parser.add_argument_group("cores"))
    parser.add_argument(
        "--dynamic-batch", "--dynamic-batch-size", action="store_true", help="a .so that takes any number of rows"
    )
    effort.add_arguments(parser.add_argument_group("how long it takes"))
    retired.add_arguments(parser)


def as_build_options(options: argparse.Namespace) -> BuildOptions:
    """The arguments as BuildOptions.

    Raises:
        OptionError: they contradict each other, or one has a value that does not exist.
    """
    return BuildOptions(
        must_compile=options.must_compile,
        minimum_segment_size=options.minimum_segment_size,
        dynamic_batch=options.dynamic_batch,
        **precision.as_build_options(options),
        **host.as_build_options(options),
        **cores.as_build_options(options),
        **effort.as_build_options(options),
    )


def warn_of_idle_patterns(chosen: BuildOptions, names: Sequence[str], warn: Callable[[str], None]) -> None:
    """Tells of each pattern that fits none of the operators of these names."""
    for option, patterns in (("--on-cpu", chosen.on_cpu), ("--fp32-cast-of", chosen.fp32_cast_of)):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
                warn(f"{option} '{pattern}' fits the name of no operator: they are {shown}")


def build_options(words: Sequence[str], what: str) -> BuildOptions:
    """The options that `words` say, as a command line would: `["--fp32-cast", "none"]`. `what` names them in errors.

    Raises:
        OptionError: a word that does not exist, and what `as_build_options` raises.
    """
    parser = _Parser(what, add_help=False, allow_abbrev=False)
    add_arguments(parser)
    found = parser.parse_args([*words])
    retired.tell(found.retired)
    return as_build_options(found)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raises what the callers of functions expect, instead of ending the process."""
        raise OptionError(f"{self.prog}: {message}")
