"""write_object: bytes as an object file of one symbol, which a linker takes like any other.

An assembler would read the bytes from a file of their own and write them again.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

from tvm_neuron.errors import NeuronError

ALIGNMENT = 64
_IDENT = b"\x7fELF\x02\x01\x01"  # of 64 bits, little-endian, version 1
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATABLE, _PROGBITS, _SYMTAB, _STRTAB = 1, 1, 2, 3
_ALLOCATED, _GLOBAL_OBJECT = 2, 0x11
_DATA, _STACK, _SYMBOLS, _NAMES = 1, 2, 3, 4  # the sections; the first is empty


def write_object(path: Path, symbol: str, pieces: Sequence[bytes | memoryview], like: Path) -> None:
    """The read-only data `pieces`, joined, as `symbol`, for the machine that the ELF file `like` is for.

    Raises:
        NeuronError: that machine isn't little-endian or hasn't 64 bits.
    """
    with like.open("rb") as file:
        ident, _, machine, version, *_, flags, _, _, _, _, _, _ = _HEADER.unpack(file.read(_HEADER.size))
    if not ident.startswith(_IDENT):
        raise NeuronError(f"a library is for a little-endian machine of 64 bits, '{like}' for another: write a .neff")
    size = sum(map(len, pieces))
    names, at = _names("", symbol, ".rodata", ".note.GNU-stack", ".symtab", ".strtab")
    symbols = bytes(_SYMBOL.size) + _SYMBOL.pack(at[symbol], _GLOBAL_OBJECT, 0, _DATA, 0, size)
    gap = bytes(-size % ALIGNMENT)
    end = ALIGNMENT + size + len(gap)
    table = end + len(symbols) + len(names)
    padding = bytes(-table % ALIGNMENT)
    sections = (
        bytes(_SECTION.size),
        _SECTION.pack(at[".rodata"], _PROGBITS, _ALLOCATED, 0, ALIGNMENT, size, 0, 0, ALIGNMENT, 0),
        _SECTION.pack(at[".note.GNU-stack"], _PROGBITS, 0, 0, end, 0, 0, 0, 1, 0),  # asks for no executable stack
        _SECTION.pack(at[".symtab"], _SYMTAB, 0, 0, end, len(symbols), _NAMES, 1, 8, _SYMBOL.size),
        _SECTION.pack(at[".strtab"], _STRTAB, 0, 0, end + len(symbols), len(names), 0, 0, 1, 0),
    )
    header = _HEADER.pack(
        _IDENT, _RELOCATABLE, machine, version, 0, 0, table + len(padding), flags, _HEADER.size, 0, 0, _SECTION.size,
        len(sections), _NAMES,
    )  # fmt: skip
    with path.open("wb") as out:
        out.writelines([header, *pieces, gap, symbols, names, padding, *sections])


def _names(*names: str) -> tuple[bytes, dict[str, int]]:
    """The names, each ended by a zero, and where each begins."""
    out, at = b"", {}
    for name in names:
        at[name] = len(out)
        out += name.encode() + b"\0"
    return out, at
