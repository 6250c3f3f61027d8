"""Ctrl-C: `neuron-cc` ends at once, wherever it is, and removes what it was writing.

As an exception it would have to pass through TVM and destructors, which make something else of it, nothing, or a crash.
Where `main` is called in a process of somebody else's, Ctrl-C remains an exception.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"  # which a live line of progress hides
_folders: set[Path] = set()
_ends_process = False


def end_process(_number: int, _frame: Any) -> None:
    """What Ctrl-C does."""
    remove_folders()
    os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"neuron-cc: interrupted\n")
    os._exit(130)


def take_over() -> None:
    """Ctrl-C ends this process from now on, unless it is ignored, as for what a script runs beside itself."""
    global _ends_process
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end_process)
        _ends_process = True


def too_late() -> None:
    """Ctrl-C does nothing from now on: what was asked for is done."""
    if _ends_process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def temporary_folder(where: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `where`, which is removed after the block, or by Ctrl-C.

    Raises:
        OSError: it can't be made.
    """
    folder = where / f"{prefix}{token_hex(8)}"
    _folders.add(folder)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _folders.discard(folder)


def remove_folders() -> None:
    """Removes what blocks of `temporary_folder` have not yet."""
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
