"""Store: results in a folder that any number of processes share.

An entry is one file, named by its key: magic, SHA-256, two lengths, a note (JSON), the result. It is written aside and
renamed, so that readers see whole entries only, and of several writers of one key the last one counts. Its checksum is
verified while it is read; an entry that fails is removed, and made again by whoever asked for it. What is not certainly
the work of this user's cache is neither read nor removed.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from struct import Struct
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO

from tvm_neuron.cache.folder import ASIDE, MAGIC, ForeignError, check_folder, claim, is_key, open_own
from tvm_neuron.neff import write_aside

_HEAD = Struct("<16s32sQQ")  # magic, SHA-256 of key and all that follows, bytes of the note, bytes of the result
_CHUNK_BYTES = 1 << 20
_ABANDONED_SECONDS = 3600


class _DamagedError(Exception):
    """An entry is not what was written."""


class Store:
    """Entries in `folder`, which take at most `limit_bytes`: those that were used longest ago go first.

    Nothing here makes a build fail: what is wrong is told to `on_trouble`, and there is no result.
    """

    def __init__(self, folder: Path, limit_bytes: int, on_trouble: Callable[[str], None]) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._on_trouble = on_trouble

    def fetch(self, key: str, target: Path | None) -> dict[str, Any] | None:
        """Copies the result to the file `target`, whole or not at all, and gives its note; None if there is none.

        Without a target there is only the note.

        Raises:
            NeffError: `target` can't be written.
        """
        entry = self.folder / key
        try:
            check_folder(self.folder)
            file = open_own(entry)
        except FileNotFoundError:
            return None
        except (ForeignError, OSError) as error:
            self._tell("read", error)
            return None
        with file:
            try:
                note, chunks = _read(file, key)
                if target is None:
                    deque(chunks, maxlen=0)  # whose checksum counts all the same
                else:
                    write_aside(target, chunks)
            except _DamagedError as error:
                self._on_trouble(f"an entry of the cache is damaged and made again: '{entry}' {error}")
                with suppress(OSError):  # it will be written over
                    entry.unlink()
                return None
        with suppress(OSError):  # of a cache that may only be read
            os.utime(entry)
        return note

    def keep(self, key: str, source: Path | None, note: dict[str, Any]) -> None:
        """Adds the file `source`, or nothing, with a note (plain values), and lets old entries go."""
        encoded = json.dumps(note).encode()
        size = _HEAD.size + len(encoded) + (source.stat().st_size if source else 0)
        if size > self.limit_bytes:
            self._on_trouble(
                f"the result takes {size / 1e6:.0f} MB and is not kept; the cache may take {self.limit_bytes / 1e6:.0f}"
            )
            return
        try:
            check_folder(self.folder)
            claim(self.folder)
            with suppress(FileNotFoundError):
                open_own(self.folder / key).close()  # or else what lies there is not replaced
            self._write(key, source, encoded)
            self._trim()
        except (ForeignError, OSError) as error:
            self._tell("written", error)

    def _tell(self, done: str, error: ForeignError | OSError) -> None:
        reason = error.strerror if isinstance(error, OSError) else error
        self._on_trouble(f"the cache '{self.folder}' can't be {done}: {reason}")

    def _write(self, key: str, source: Path | None, note: bytes) -> None:
        with NamedTemporaryFile(dir=self.folder, prefix=ASIDE, delete=False) as file:
            try:
                file.write(_HEAD.pack(MAGIC, bytes(32), 0, 0))
                file.flush()  # whoever finds it now knows whose it is
                digest, size = _started(key, note), 0
                file.write(note)
                with source.open("rb") if source else BytesIO() as result:
                    while chunk := result.read(_CHUNK_BYTES):
                        digest.update(chunk)
                        size += file.write(chunk)
                file.seek(0)
                file.write(_HEAD.pack(MAGIC, digest.digest(), len(note), size))
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, self.folder / key)
            except BaseException:
                os.unlink(file.name)
                raise

    def _trim(self) -> None:
        """Removes what exceeds the limit, and what a writer that died left behind."""
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError, ForeignError), open_own(path) as file:  # or another process has just removed it
                stat = os.fstat(file.fileno())
                if is_key(path.name):
                    found.append((stat.st_mtime_ns, stat.st_size, path))
                elif path.name.startswith(ASIDE) and time.time() - stat.st_mtime > _ABANDONED_SECONDS:
                    path.unlink()
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size


def _started(key: str, note: bytes) -> Any:
    return sha256(b"%s\n%d\n%s" % (key.encode(), len(note), note))


def _read(file: BinaryIO, key: str) -> tuple[dict[str, Any], Iterator[bytes]]:
    """The note, and the result in chunks: the last of them comes only if all of it is as it was written.

    Raises:
        _DamagedError: it is not.
    """
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise _DamagedError("ends within its head")
    _, expected, note_bytes, result_bytes = _HEAD.unpack(head)
    if size != _HEAD.size + note_bytes + result_bytes:
        raise _DamagedError(f"has {size} bytes instead of {_HEAD.size + note_bytes + result_bytes}")
    note = file.read(note_bytes)

    def chunks() -> Iterator[bytes]:
        digest = _started(key, note)
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            yield chunk
        if digest.digest() != expected:
            raise _DamagedError("has a wrong checksum")

    try:
        return json.loads(note), chunks()
    except ValueError as error:
        raise _DamagedError("has a damaged note") from error
