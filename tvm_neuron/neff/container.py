"""The container: a checked header, a table of sections, and the sections' bytes.

    byte 0   magic, 8 bytes; damaged by any transfer that treats the file as text
    byte 8   major, minor version: two uint16. Another major version is refused, a newer minor one is read.
    byte 12  header size in bytes: uint32, everything before the first section
    byte 16  compiler version: 32 bytes of UTF-8, filled up with zeros
    byte 48  SHA-256 of the header without these 32 bytes
    byte 80  file size: uint64; then the section table

The first 48 bytes keep their places in all versions. All numbers are little-endian. The table has the number of
sections as uint32, then of each: name (as `isa.codec` writes texts), flags (uint32), offset and size (uint64 each),
SHA-256. Sections follow in that order, each starting at a multiple of 64, with zeros between. So every byte of the
file is covered by a checksum or must be zero. SHA-256, because the common CPUs compute it in hardware: 1.3 GB/s here,
twice BLAKE2b. A compressed section has its checksum over what is stored.
"""

import hashlib
import struct
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from tvm_neuron.errors import NeffError
from tvm_neuron.isa.codec import Reader, Writer
from tvm_neuron.neff.deflate import deflated, inflated, inflated_bytes

MAGIC = b"\x89NEFF\r\n\x1a"
MAJOR, MINOR = 1, 11
NEEDED = 1  # flag of a section that a reader must know: without it the others mean something else
COMPRESSED = 2  # flag of a section that is stored deflated
ALIGNMENT = 64
MAX_SECTIONS = 256
WEIGHTS = "weights"  # the section whose size follows from others
MOST_BYTES = 1 << 22  # of any other that is compressed: as Python's values it takes some twenty times as much
_DIGEST_BYTES = _BANNER_BYTES = 32
_PREFIX = struct.Struct("<8sHHI32s32sQ")
_DIGEST_AT = 48
_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<IQQ32s")


@dataclass(frozen=True, slots=True)
class Section:
    """Where one section lies and the checksum that its bytes must have."""

    name: str
    offset: int
    size: int
    digest: bytes
    is_needed: bool = False
    is_compressed: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """What a container says about itself."""

    version: tuple[int, int]
    size_bytes: int
    compiler_version: str
    sections: tuple[Section, ...]


Pieces = list[bytes | memoryview]


def pack(
    sections: Mapping[str, Pieces], compiler_version: str, needed: Container[str] = (), compress: bool = False
) -> Iterator[bytes | memoryview]:
    """The container's bytes, piece by piece; a section is given as the pieces to be joined.

    A reader that doesn't know one of the sections `needed` refuses the file. `compress` stores what gets smaller by it
    deflated.
    """
    names = Writer()
    for name in sections:
        names.text(name)
    header_bytes = end = _PREFIX.size + _COUNT.size + len(sections) * _ENTRY.size + len(names.bytes())
    table = Writer()
    table.parts.append(_COUNT.pack(len(sections)))
    stored: Pieces = []
    for name, given in sections.items():
        may_be = compress and (name == WEIGHTS or sum(map(len, given)) <= MOST_BYTES)
        smaller = deflated(given) if may_be else None
        pieces = given if smaller is None else smaller
        flags = (NEEDED if name in needed else 0) | (0 if smaller is None else COMPRESSED)
        gap, size = bytes(-end % ALIGNMENT), sum(map(len, pieces))
        table.text(name)
        table.parts.append(_ENTRY.pack(flags, end + len(gap), size, _digest(pieces)))
        stored += [gap, *pieces]
        end += len(gap) + size
    banner = compiler_version.encode()[:_BANNER_BYTES].decode(errors="ignore").encode()
    first = _PREFIX.pack(MAGIC, MAJOR, MINOR, header_bytes, banner, bytes(_DIGEST_BYTES), end)[:_DIGEST_AT]
    last = end.to_bytes(8, "little") + table.bytes()
    yield first + _digest([first, last]) + last
    yield from stored


def read_banner(data: bytes) -> tuple[tuple[int, int], str]:
    """(version, version of the compiler that wrote it) of a NEFF of any version.

    Raises:
        NeffError: not a NEFF, or not even these are there.
    """
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise NeffError("not a NEFF: the file doesn't start with its magic number")
    if len(data) < _PREFIX.size:
        raise NeffError(f"NEFF is truncated: {len(data)} bytes, its header alone has at least {_PREFIX.size}")
    _, major, minor, _, banner, _, _ = _PREFIX.unpack_from(data)
    return (major, minor), banner.rstrip(b"\0").decode(errors="replace")


def version_problem(version: tuple[int, int], compiler: str) -> str:
    """Why a NEFF of `version` can't be read here and what to do about it; "" if it can."""
    major, minor = version
    if major == MAJOR:
        return ""
    age, advice = ("newer", "update tvm_neuron") if major > MAJOR else ("older", "compile the model again")
    return (
        f"NEFF version {major}.{minor}, written by compiler {compiler}, is {age} than the versions {MAJOR}.x "
        f"that are supported here: {advice}"
    )


def read_header(data: bytes) -> Header:
    """Checks everything but the sections' contents.

    Raises:
        NeffError: not a NEFF, another major version, truncated or a damaged header.
    """
    version, compiler = read_banner(data)
    if problem := version_problem(version, compiler):
        raise NeffError(problem)
    _, _, _, header_bytes, _, digest, file_bytes = _PREFIX.unpack_from(data)
    if len(data) < header_bytes:
        raise NeffError(f"NEFF is truncated: {len(data)} bytes, its header alone has {header_bytes}")
    if _digest([data[:_DIGEST_AT], data[_DIGEST_AT + _DIGEST_BYTES : header_bytes]]) != digest:
        raise NeffError("NEFF is corrupted: the checksum of its header is wrong")
    if len(data) != file_bytes:
        state = "truncated" if len(data) < file_bytes else "corrupted"
        raise NeffError(f"NEFF is {state}: {len(data)} bytes instead of {file_bytes}")
    sections = _read_table(Reader(data[_PREFIX.size : header_bytes]), header_bytes, file_bytes)
    return Header(version, header_bytes, compiler, sections)


def _read_table(table: Reader, header_bytes: int, file_bytes: int) -> tuple[Section, ...]:
    sections: list[Section] = []
    end = header_bytes
    (count,) = _COUNT.unpack(table.take(_COUNT.size))
    if count > MAX_SECTIONS:
        raise NeffError(f"NEFF has {count} sections; at most {MAX_SECTIONS} can be")
    for _ in range(count):
        name = table.text()
        flags, offset, size, digest = _ENTRY.unpack(table.take(_ENTRY.size))
        if flags & ~(NEEDED | COMPRESSED):
            raise NeffError(f"NEFF section '{name}' has flags {flags:#x} that are unknown here: update tvm_neuron")
        if offset != end + -end % ALIGNMENT or offset + size > file_bytes:
            raise NeffError(f"NEFF section '{name}' at bytes {offset} to {offset + size} doesn't follow byte {end}")
        end = offset + size
        sections.append(Section(name, offset, size, digest, bool(flags & NEEDED), bool(flags & COMPRESSED)))
    if end != file_bytes or not table.is_done or len({section.name for section in sections}) != len(sections):
        raise NeffError("NEFF is corrupted: its section table has a doubled name or doesn't end with the file")
    return tuple(sections)


def check_known(header: Header, known: Container[str]) -> None:
    """Every section that its writer says is needed is one that this reader knows.

    Raises:
        NeffError: the first that is not.
    """
    for section in header.sections:
        if section.is_needed and section.name not in known:
            raise NeffError(f"NEFF section '{section.name}' is needed to run it and unknown here: update tvm_neuron")


class Sections(Mapping[str, memoryview]):
    """The sections by name. A compressed one is decompressed when it is asked for, and not beyond what it may have."""

    def __init__(self, header: Header, view: memoryview) -> None:
        self._stored = {s.name: view[s.offset : s.offset + s.size] for s in header.sections}
        self._compressed = {section.name for section in header.sections if section.is_compressed}

    def __getitem__(self, name: str) -> memoryview:
        """One that becomes Python's values, which take many times as much memory.

        Raises:
            NeffError: it can't be decompressed, or has more than `MOST_BYTES` that aren't there before.
        """
        size = self._bytes(name)
        if name in self._compressed and size > MOST_BYTES:
            raise NeffError(f"NEFF section '{name}' says it has {size} bytes compressed; at most {MOST_BYTES} can be")
        return self._contents(name)

    def sized(self, name: str, size: int) -> memoryview:
        """One of which it is known how much it must have.

        Raises:
            NeffError: it has another size, or can't be decompressed.
        """
        if self._bytes(name) != size:
            raise NeffError(f"NEFF section '{name}' has {self._bytes(name)} bytes; the program's tensors take {size}")
        return self._contents(name)

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def _bytes(self, name: str) -> int:
        stored = self._stored[name]
        return inflated_bytes(stored) if name in self._compressed else len(stored)

    def _contents(self, name: str) -> memoryview:
        stored = self._stored[name]
        return inflated(stored, name) if name in self._compressed else stored


def unpack(data: bytes) -> tuple[Header, Sections]:
    """The header and the sections, copied only where they are compressed; all checksums are verified.

    Raises:
        NeffError: see `read_header`; a section is damaged.
    """
    header = read_header(data)
    view = memoryview(data)
    for section in header.sections:
        if _digest([view[section.offset : section.offset + section.size]]) != section.digest:
            raise NeffError(f"NEFF is corrupted: the checksum of its section '{section.name}' is wrong")
    ends = [header.size_bytes, *(section.offset + section.size for section in header.sections[:-1])]
    if any(any(view[end : end + -end % ALIGNMENT]) for end in ends):
        raise NeffError("NEFF is corrupted: the bytes between two sections are not zero")
    return header, Sections(header, view)


def _digest(pieces: Pieces) -> bytes:
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total.digest()
