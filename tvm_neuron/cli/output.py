"""written_aside: an output that is there as a whole or not at all, never in place of an input, and not after Ctrl-C."""

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tvm_neuron.cli.interrupt import temporary_folder, too_late
from tvm_neuron.errors import NeffError, OptionError

_SHOWN = 60
_WRITTEN = ("output", "logfile", "html", "timeline")
"""The arguments of all commands that name files to write."""


def check_apart(options: Namespace) -> None:
    """No file is written twice, or in place of one that the command reads.

    Raises:
        OptionError: one is.
    """
    given = {name: value if isinstance(value, list) else [value] for name, value in vars(options).items()}
    for name in _WRITTEN:
        path = getattr(options, name, None)
        if not isinstance(path, str):
            continue
        for other, found in given.items():
            is_written = other in _WRITTEN
            if other != name and any(_is_same(path, each, is_written) for each in found if isinstance(each, str)):
                what = f"--{other} writes, too" if is_written else "the command reads"
                raise OptionError(f"--{name} '{path}' is a file that {what}: give another name")


def _is_same(path: str, other: str, is_written: bool) -> bool:
    if os.path.isfile(path) and os.path.isfile(other):
        return os.path.samefile(path, other)
    return is_written and os.path.abspath(path) == os.path.abspath(other)


def check_path(text: str) -> None:
    """Raises ArgumentTypeError unless a file can have this path."""
    path = Path(text)
    name = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    try:
        if not path.absolute().parent.is_dir():
            raise ArgumentTypeError(f"there is no folder '{path.parent}'")
        if path.is_dir():
            raise ArgumentTypeError(f"'{name}' is a folder")
    except OSError as error:
        raise ArgumentTypeError(f"'{name}' can't be a file: {error.strerror}") from error


@contextmanager
def written_aside(output: Path) -> Iterator[Path]:
    """Gives the path of a file to write, which takes the place of `output` when the block has ended.

    Raises:
        NeffError: it can't be written there.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder(output.absolute().parent, ".neuron-cc-"))
        except OSError as error:
            raise NeffError(f"'{output}' can't be written: {error.strerror}") from error
        made = folder / output.name
        try:
            yield made
        except NeffError as error:
            raise NeffError(str(error).replace(str(made), str(output))) from error
        too_late()
        try:
            os.replace(made, output)
        except OSError as error:
            raise NeffError(f"'{output}' can't be written: {error.strerror}") from error
