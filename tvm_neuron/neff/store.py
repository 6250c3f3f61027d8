"""save and load: NEFF files."""

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from tvm_neuron.errors import NeffError
from tvm_neuron.neff.neff import Neff
from tvm_neuron.neff.pipeline import Pipeline, pipeline_pieces
from tvm_neuron.neff.reader import read
from tvm_neuron.neff.writer import pieces


def save(neff: Neff | Pipeline, path: str | Path, compress: bool = False) -> None:
    """Writes the file aside and renames it, so that `path` is never half written.

    `compress` makes it smaller, and slower to load.

    Raises:
        NeffError: the file can't be written.
        ProgramError: see `write`.
    """
    write_aside(path, pieces(neff, compress) if isinstance(neff, Neff) else pipeline_pieces(neff, compress))


def write_aside(path: str | Path, data: Iterable[bytes | memoryview]) -> None:
    """The file `path` with `data` in it, or as it was before.

    Raises:
        NeffError: the file can't be written.
    """
    target = Path(path)
    aside = target.with_name(f".neuron-cc-{os.getpid()}-{threading.get_ident()}.part")  # not longer than names may be
    try:
        with aside.open("wb") as file:
            file.writelines(data)
        aside.replace(target)
    except OSError as error:
        raise NeffError(f"'{path}' can't be written: {error.strerror}") from error
    finally:
        aside.unlink(missing_ok=True)


def load(path: str | Path) -> Neff:
    """The NEFF in the file `path`.

    Raises:
        NeffError: the file can't be read; see `read`.
    """
    return read(read_file(path))


def read_file(path: str | Path) -> bytes:
    """The bytes of the file.

    Raises:
        NeffError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NeffError(f"'{path}' can't be read: {error.strerror}") from error
