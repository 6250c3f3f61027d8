"""Opens what `compile` wrote: a NEFF or a library, told apart by their contents."""

import argparse
import struct
from typing import Any

from tvm_neuron import neff
from tvm_neuron.errors import NeffError

_ELF = b"\x7fELF"
_ELF_HEADER_BYTES = 64


def open_compiled(path: str) -> Any:
    """A `Pipeline`, of one core or several, whose programs are verified, or a TVM module.

    Raises:
        NeffError: it is neither, or damaged.
    """
    data = neff.read_file(path)
    if not data.startswith(_ELF):
        return neff.verified(neff.read_pipeline(data))
    _check_whole(path, data)
    del data  # loading makes copies of its own, beside which this one need not be held
    return _load_library(path)


def add_core(parser: argparse.ArgumentParser) -> None:
    """`--core`, of the commands that take the program of one core."""
    parser.add_argument("--core", type=int, default=0, metavar="N", help="which core of a pipeline, from 0 (0)")


def read_core(options: argparse.Namespace) -> bytes:
    """The NEFF of one core, for the commands that take nothing else.

    Raises:
        NeffError: the file can't be read, is a library, or has no such core.
    """
    data = neff.read_file(options.file)
    if data.startswith(_ELF):
        raise NeffError(f"'{options.file}' is a library, this command takes a .neff; `neuron-cc report` takes both")
    files = neff.core_files(data)
    if not 0 <= options.core < len(files):
        raise NeffError(f"'{options.file}' has no core {options.core}: its cores are 0 to {len(files) - 1}")
    core: bytes = files[options.core]
    return core


def _check_whole(path: str, data: bytes) -> None:
    if len(data) < _elf_bytes(data):  # loading it would end this process by a signal
        raise NeffError(f"'{path}' is a truncated library: {len(data)} bytes instead of {_elf_bytes(data)}")


def _load_library(path: str) -> Any:
    import tvm

    try:
        return tvm.runtime.load_module(path)
    except Exception as error:  # whatever the dynamic loader finds wrong
        raise NeffError(f"'{path}' can't be loaded as a compiled library: {str(error).splitlines()[-1]}") from error


def _elf_bytes(data: bytes) -> int:
    """The least size of a 64-bit little-endian ELF file: its table of sections comes last."""
    if len(data) < _ELF_HEADER_BYTES:
        return _ELF_HEADER_BYTES
    (offset,) = struct.unpack_from("<Q", data, 40)
    entry_bytes, count = struct.unpack_from("<HH", data, 58)
    return int(offset + entry_bytes * count)
