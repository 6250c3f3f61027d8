"""Opens what `compile` wrote: a NEFF or a library, told apart by their contents."""

import argparse
import struct
from typing import Any

from tvm_neuron import neff
from tvm_neuron.cli.arrays import Arrays
from tvm_neuron.errors import NeffError
from tvm_neuron.profile import Report, make_report

_ELF = b"\x7fELF"
_ELF_HEADER_BYTES = 64


def open_compiled(path: str) -> Any:
    """A `Pipeline`, of one core or several, whose programs are verified, or a TVM module.

    Raises:
        NeffError: it is neither, or damaged.
    """
    data = _read(path)
    if not data.startswith(_ELF):
        return neff.verified(neff.read_pipeline(data))
    _check_whole(path, data)
    del data  # loading makes copies of its own, beside which this one need not be held
    return _load_library(path)


def report_of(path: str, bucket: int = 0, inputs: Arrays | None = None) -> Report:
    """The report of a .neff or a library, or of one of its buckets; with `inputs` its CPU parts are timed.

    Raises:
        NeuronError: see `open_compiled`; a .neff has no buckets and no CPU parts, a library not this bucket.
    """
    compiled = open_compiled(path)
    if isinstance(compiled, neff.Pipeline):
        if bucket:
            raise NeffError(f"--bucket {bucket}: a .neff has one set of shapes; leave the option out")
        if inputs is not None:
            raise NeffError("--input is for timing CPU parts, and a .neff has none: leave the option out")
        return make_report(compiled.cores[0].placement, [compiled])
    from tvm_neuron.runtime import report

    return report(compiled, bucket, inputs)


def is_library(path: str) -> bool:
    """Whether it is a shared object, whatever is in it.

    Raises:
        NeffError: it can't be read.
    """
    return neff.read_file(path).startswith(_ELF)


def add_program(parser: argparse.ArgumentParser) -> None:
    """`--program` and `--bucket`, of the commands that take one program of a library."""
    parser.add_argument("--program", metavar="NAME", help="which Neuron program of a library, where it has several")
    parser.add_argument("--bucket", type=int, default=0, metavar="N", help="which of a library's buckets, 0: the least")


def add_core(parser: argparse.ArgumentParser) -> None:
    """`--core`, of the commands that take the program of one core."""
    parser.add_argument("--core", type=int, default=0, metavar="N", help="which core of a pipeline, from 0 (0)")


def read_program(options: argparse.Namespace) -> bytes:
    """The NEFF in a file, or the one of a library's that the options choose.

    Raises:
        NeffError: the file can't be read, or it has no such program or several.
        NeuronError: it has no such bucket.
    """
    data = _read(options.file)
    if not data.startswith(_ELF):
        if options.program or options.bucket:
            raise NeffError(f"'{options.file}' is one program: leave --program and --bucket out")
        return data
    from tvm_neuron.runtime import neffs

    _check_whole(options.file, data)
    found = neffs(_load_library(options.file), options.bucket)
    if not found:
        raise NeffError(f"'{options.file}' has no Neuron program: all of it runs on the CPU")
    chosen = options.program or (next(iter(found)) if len(found) == 1 else "")
    if chosen not in found:
        wrong = f"no program '{chosen}'" if chosen else "several programs"
        raise NeffError(f"'{options.file}' has {wrong}: choose one with --program: {', '.join(found)}")
    return found[chosen]


def read_core(options: argparse.Namespace) -> bytes:
    """The NEFF of one core of it.

    Raises:
        NeuronError: see `read_program`; there is no such core.
    """
    files = neff.core_files(read_program(options))
    if not 0 <= options.core < len(files):
        raise NeffError(f"'{options.file}' has no core {options.core}: its cores are 0 to {len(files) - 1}")
    core: bytes = files[options.core]
    return core


def _read(path: str) -> bytes:
    data = neff.read_file(path)
    if not data.startswith((_ELF, neff.MAGIC)):
        raise NeffError(f"'{path}' is neither a .neff nor a library: give a file that neuron-cc compile has written")
    return data


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
