"""--verbose and --logfile: how much a command tells, and where."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from os.path import isdir
from pathlib import Path
from typing import Any

from tvm_neuron import neff
from tvm_neuron.cli.progress import stages
from tvm_neuron.errors import DefectWarning, NeuronWarning, OptionError

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50}
_PROGRESS_TO = 35  # the original's number for warnings with a progress bar
Tell = Callable[[str], None]


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """The arguments about what is told."""
    parser.add_argument(
        "--verbose",
        type=_level,
        default="info",
        metavar="LEVEL",
        help="debug: also where every operator runs; info, warning: progress; error: no progress; or a number",
    )
    parser.add_argument("--logfile", metavar="FILE", help="everything that debug tells, with the time, into this file")


class Log:
    """What a command tells: stages on stderr as they begin, details where asked for, and all of it in the log file."""

    def __init__(self, title: str, level: int, on_stage: Tell) -> None:
        self._title = title
        self._level = level
        self._on_stage = on_stage
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.has_defect = False

    def stage(self, name: str) -> None:
        """A stage begins."""
        self.lines.append(f"{datetime.now(UTC):%H:%M:%S.%f} {name}")
        self._on_stage(name)

    def warning(self, text: str) -> None:
        """Told unless nothing but errors is to be."""
        self.lines.append(f"warning: {text}")
        self.warnings.append(text)
        if self._level <= _PROGRESS_TO:
            print_warning(self._title, text)

    def detail(self, text: str) -> None:
        """Told at the level debug, and in the log file."""
        self.lines.append(text)
        if self._level <= _LEVELS["debug"]:
            print(text, file=sys.stderr)


def print_warning(title: str, text: object) -> None:
    """On stderr."""
    print(f"neuron-cc {title}: warning: {text}", file=sys.stderr)


@contextmanager
def warnings_to(tell: Callable[[NeuronWarning], None]) -> Iterator[None]:
    """Warnings of this project go to `tell`, without the place in its code that they come from."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, *where: Any) -> None:
            if isinstance(message, NeuronWarning):
                tell(message)
            else:
                others(message, *where)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def log(title: str, options: argparse.Namespace) -> Iterator[Log]:
    """The log of a command; its file is written when the command ends, in whatever way."""
    if options.logfile and not isdir(Path(options.logfile).absolute().parent):
        raise OptionError(f"--logfile: there is no folder '{Path(options.logfile).parent}'")
    with stages(title, is_quiet=options.verbose > _PROGRESS_TO) as on_stage:
        found = Log(title, options.verbose, on_stage)

        def told(warning: NeuronWarning) -> None:
            found.has_defect |= isinstance(warning, DefectWarning)
            found.warning(str(warning))

        found.lines += [f"command line: {' '.join(sys.argv)}", f"{datetime.now(UTC):%Y-%m-%d} (UTC)"]
        try:
            with warnings_to(told):
                yield found
        except BaseException as error:
            found.lines.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            if options.logfile:
                neff.write_aside(options.logfile, ["".join(f"{line}\n" for line in found.lines).encode()])


def _level(text: str) -> int:
    if text.lower() in _LEVELS:
        return _LEVELS[text.lower()]
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(_LEVELS)}, and no number")
