"""Tarballs of a few files: written whole or not at all, and read by name, nothing else being unpacked."""

import io
import os
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tvm_neuron.errors import ModelError, NeffError
from tvm_neuron.neff import write_aside


def write(path: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """The files as one tarball.

    Raises NeffError: it can't be written.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    write_aside(Path(path), [out.getbuffer()])


def read(path: str | os.PathLike[str], names: Iterable[str]) -> dict[str, bytes]:
    """The contents of these files, as far as they are there.

    Raises ModelError: it can't be read, or is no tarball.
    """
    try:
        with tarfile.open(path) as archive:
            members = {member.name.removeprefix("./"): member for member in archive if member.isfile()}
            found = {name: archive.extractfile(members[name]) for name in names if name in members}
            return {name: file.read() for name, file in found.items() if file is not None}
    except OSError as error:
        raise ModelError(f"'{path}' can't be read: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError) as error:
        raise ModelError(f"'{path}' is no tarball: {error}") from error


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file.

    Raises NeffError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NeffError(f"'{path}' can't be read: {error.strerror}") from error
