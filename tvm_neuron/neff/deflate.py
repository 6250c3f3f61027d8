"""Compressed sections: the size that they have, as uint64, and a zlib stream."""

import zlib
from collections.abc import Iterable

from tvm_neuron.errors import NeffError

_SIZE_BYTES = 8
_LEVEL = 1  # weights are noise to zlib: 6 takes three times as long for 1 % less
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


def inflated(stored: memoryview, name: str) -> memoryview:
    """What was compressed; takes no more memory than it says it does, and that is checked first.

    Raises:
        NeffError: it doesn't give the size that it says.
    """
    size, stream = int.from_bytes(stored[:_SIZE_BYTES], "little"), stored[_SIZE_BYTES:]
    if size > _MOST_RATIO * len(stream):
        raise NeffError(f"NEFF section '{name}' says it has {size} bytes, more than {len(stream)} can hold compressed")
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(stream, size + 1)
    except zlib.error as error:
        raise NeffError(f"NEFF section '{name}' can't be decompressed: {error}") from error
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise NeffError(f"NEFF section '{name}' doesn't decompress to the {size} bytes that it says it has")
    return memoryview(data)
