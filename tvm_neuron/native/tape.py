"""Tape: calls of the library that are made again in one go."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm_neuron.native.library import native

_NUMBERS = {"assign": 0, "add_products": 1}  # as in tape.cc
_ACTIVE = threading.local()


class Tape:
    """What was called, with all addresses but that of the sums, to which `add_products` adds."""

    def __init__(self) -> None:
        self.is_whole = True  # nothing was done elsewhere
        self._words: list[int] = []
        self._arrays: list[Any] = []  # keeps what the words point to
        self._encoded: Any = None

    def add(self, name: str, arguments: tuple[Any, ...]) -> None:
        """One more call."""
        self._arrays += [argument for argument in arguments if isinstance(argument, ctypes.Array)]
        self._words.append(_NUMBERS[name])
        self._words += [_word(argument) for argument in arguments]

    def replay(self, sums: int) -> None:
        """Makes the calls again, with the sums at the address `sums`."""
        if self._encoded is None:
            self._encoded = (ctypes.c_int64 * len(self._words))(*self._words)
        library = native()
        assert library is not None
        library.tvm_neuron_replay(self._encoded, len(self._words), sums)


def call(name: str, *arguments: Any) -> int:
    """Calls a function of the library, which is there; what is being recorded has it, too."""
    tape: Tape | None = getattr(_ACTIVE, "tape", None)
    if tape is not None:
        tape.add(name, arguments)
    done: int = getattr(native(), f"tvm_neuron_{name}")(*arguments)
    return done


def is_recording() -> bool:
    """Whether this thread's calls are recorded."""
    return getattr(_ACTIVE, "tape", None) is not None


def leave_out() -> None:
    """Says that something is done without the library, so that what is being recorded is not all."""
    if is_recording():
        _ACTIVE.tape.is_whole = False


@contextmanager
def recording() -> Iterator[Tape]:
    """Records this thread's calls of the library."""
    _ACTIVE.tape = tape = Tape()
    try:
        yield tape
    finally:
        _ACTIVE.tape = None


def _word(argument: Any) -> int:
    if isinstance(argument, ctypes.Array):
        return ctypes.addressof(argument)
    return int((argument.value or 0) if isinstance(argument, ctypes.c_void_p) else argument)
