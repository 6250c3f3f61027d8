"""Compressed sections: the size that they have, as uint64, and a zlib stream."""

import zlib
from collections.abc import Iterable, Iterator

from tvm_neuron.errors import NeffError

_SIZE_BYTES = 8
_LEVEL = 1  # weights are noise to zlib: 6 takes three times as long for 1 % less
_PIECE_BYTES = 1 << 20
_MOST_RATIO = 1032  # of what deflate can make smaller


def deflated(pieces: Iterable[bytes | memoryview]) -> list[bytes | memoryview] | None:
    """The pieces as one compressed section, or None where that isn't smaller."""
    packer = zlib.compressobj(_LEVEL)
    size, out = 0, []
    for piece in pieces:
        size += len(piece)
        out.append(packer.compress(piece))
    out.append(packer.flush())
    stored = [size.to_bytes(_SIZE_BYTES, "little"), *filter(None, out)]
    return [*stored] if sum(map(len, stored)) < size else None


def inflated_bytes(stored: memoryview) -> int:
    """The size that a compressed section says it has."""
    return int.from_bytes(stored[:_SIZE_BYTES], "little")


def inflated(stored: memoryview, name: str) -> memoryview:
    """What was compressed; takes as much memory as came out so far, and no more than it says that it has.

    Raises:
        NeffError: it doesn't give the size that it says.
    """
    size, stream = inflated_bytes(stored), stored[_SIZE_BYTES:]
    if size > _MOST_RATIO * len(stream):
        raise NeffError(f"NEFF section '{name}' says it has {size} bytes, more than {len(stream)} can hold compressed")
    unpacker = zlib.decompressobj()
    try:
        data = bytearray(size)  # the system gives its memory page by page, as they are written
    except MemoryError as error:
        raise NeffError(f"NEFF section '{name}' says it has {size} bytes, more than this machine gives") from error
    end = 0
    try:
        for piece in _pieces(unpacker, stream):
            if end + len(piece) > size:
                break
            data[end : end + len(piece)] = piece
            end += len(piece)
    except zlib.error as error:
        raise NeffError(f"NEFF section '{name}' can't be decompressed: {error}") from error
    if end != size or not unpacker.eof or unpacker.unused_data:
        raise NeffError(f"NEFF section '{name}' doesn't decompress to the {size} bytes that it says it has")
    return memoryview(data).toreadonly()


def _pieces(unpacker: "zlib._Decompress", stream: memoryview) -> Iterator[bytes]:
    """What comes out, in pieces; what goes in too, since the rest of what goes in is copied each time."""
    for at in range(0, len(stream), _PIECE_BYTES):
        left: bytes | memoryview = stream[at : at + _PIECE_BYTES]
        while piece := unpacker.decompress(left, _PIECE_BYTES):
            yield piece
            left = unpacker.unconsumed_tail
