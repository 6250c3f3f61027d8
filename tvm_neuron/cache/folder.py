"""The folder of a cache: made for it, marked as its own, closed to other users. And what in it is certainly its own."""

import os
import re
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import BinaryIO

ASIDE = ".part-"  # how the names of entries begin while they are written
MAGIC = b"tvm_neuron 1\n\0\0\0"  # how entries begin
_TAG = "CACHEDIR.TAG"  # by bford.info/cachedir: programs that copy folders may leave it out
_MARK = b"""Signature: 8a477f597d28d172789f06886806bc55
# The cache of neuron-cc (tvm_neuron), which may be removed at any time.
"""
_KEY = re.compile("[0-9a-f]{64}")
_OTHERS_WRITE = 0o022


class ForeignError(Exception):
    """A folder or file is not certainly the work of this user's cache."""


def is_key(name: str) -> bool:
    """Whether an entry may have this name."""
    return _KEY.fullmatch(name) is not None


def check_folder(folder: Path) -> None:
    """The folder, if there is one, is a cache or empty, and no other user can have written it.

    Raises:
        ForeignError: it isn't so.
        OSError: it can't be read.
    """
    try:
        found, names = folder.stat(), os.listdir(folder)
    except FileNotFoundError:
        return
    if whose := _written_by_others(found):
        raise ForeignError(f"it {whose}")
    others = [name for name in names if name != _TAG and not name.startswith(ASIDE) and not is_key(name)]
    if names and not _is_marked(folder):  # its mark is there before anything else
        others = others or names
    if others:
        raise ForeignError(f"it holds '{min(others)}', which is not the cache's: give it an empty folder of its own")


def claim(folder: Path) -> None:
    """Makes the folder if there is none, and marks it as a cache.

    Raises:
        OSError: that is not possible.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    with suppress(FileExistsError), (folder / _TAG).open("xb") as tag:
        tag.write(_MARK)


def open_own(path: Path) -> BinaryIO:
    """A file that is an entry, or the beginning of one, and that no other user can have written.

    Raises:
        ForeignError: it isn't.
        OSError: it can't be read.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == ELOOP:
            raise ForeignError(f"its entry '{path.name}' is a link to another place") from error
        raise
    try:
        found = os.fstat(number)
        whose = _written_by_others(found)
        if whose is None and not (S_ISREG(found.st_mode) and os.pread(number, len(MAGIC), 0) == MAGIC):
            whose = "does not begin as entries do"
        if whose:
            raise ForeignError(f"its entry '{path.name}' {whose}, so it is left alone; remove it if you don't need it")
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _written_by_others(found: os.stat_result) -> str | None:
    if found.st_uid != os.geteuid():
        return f"belongs to the user {found.st_uid}, not to {os.geteuid()}"
    if found.st_mode & _OTHERS_WRITE:
        return f"may be written by other users (its mode is {S_IMODE(found.st_mode):o})"
    return None


def _is_marked(folder: Path) -> bool:
    """Whether there is a mark, or the beginning of one that another process writes."""
    tag = folder / _TAG
    try:
        found = tag.lstat()
        return S_ISREG(found.st_mode) and found.st_size <= len(_MARK) and _MARK.startswith(tag.read_bytes())
    except FileNotFoundError:
        return False
