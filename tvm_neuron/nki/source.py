"""place, wrong: the kernel's own file and line, and errors that end in them."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tvm_neuron.errors import KernelError

_HERE = str(Path(__file__).parent)


def place() -> str:
    """`file:line` of the innermost code that is not the language's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised(error: BaseException) -> str:
    """`file:line` of the innermost code that is not the language's own, of those that the error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_HERE)] or list(frames)
    return f"{own[-1].filename}:{own[-1].lineno}"


_blamed: list[str] = []


@contextmanager
def blamed(at: str) -> Iterator[None]:
    """What goes wrong inside is the fault of the kernel's call at `at`, which may have been a while ago."""
    _blamed.append(at)
    try:
        yield
    finally:
        _blamed.pop()


def wrong(message: str, at: str = "") -> KernelError:
    """The error for what the kernel does at `at`, by default here."""
    return KernelError(f"{message} ({at or (_blamed[-1] if _blamed else place())})")
