"""read: bytes as a Neff. Nothing is trusted: every checksum, count, code and reference is checked, nothing executed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import DeviceError, NeffError, ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.hw.load import device_from_dict
from tvm_neuron.isa import QUEUES
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.neff.container import ALIGNMENT, WEIGHTS, Sections, check_known, unpack
from tvm_neuron.neff.neff import Neff
from tvm_neuron.neff.streams import decode_stream
from tvm_neuron.neff.tables import decode_json, decode_origins, decode_tensors, infos_from_json, placement_from_json
from tvm_neuron.neff.writer import PROLOGUE, STREAM
from tvm_neuron.program import DramTensor, Node, Program
from tvm_neuron.program.form import check_form
from tvm_neuron.program.residents import check_residents
from tvm_neuron.program.streams import join

T = TypeVar("T")
CORE = "core."  # prefix of the sections that are NEFFs of one core each
_MAX_MACS = 1 << 62  # more than any device does in a year
_MAX_PS = 1 << 62  # two months
_NEEDED = ("model", "options", "device", "memory", "placement", "origins", "tensors", WEIGHTS)
_KNOWN = (*_NEEDED, *(prefix + queue for prefix in (STREAM, PROLOGUE) for queue in QUEUES))


def read(data: bytes) -> Neff:
    """The NEFF in `data`; its weights are read-only views into `data`.

    Raises:
        NeffError: not a NEFF, truncated, corrupted, of another major version, or it contradicts itself.
    """
    with describe_errors():
        return _read(data)


@contextmanager
def describe_errors() -> Iterator[None]:
    """Names from a file may hold anything; inside, the message of an error becomes one line for a terminal."""
    try:
        yield
    except NeffError as error:
        raise NeffError("".join(c if c.isprintable() else "?" for c in str(error))) from error


def _read(data: bytes) -> Neff:
    header, sections = unpack(data)
    if CORE + "0" in sections:
        raise NeffError("NEFF holds the programs of several cores, and this takes the program of one")
    check_known(header, _KNOWN)
    missing = [name for name in _NEEDED if name not in sections]
    if missing:
        raise NeffError(f"NEFF has no section '{missing[0]}'")
    model = decode_json(sections["model"], "model")
    if set(model) != {"name", "compiler", "inputs", "outputs"} or not isinstance(model["name"], str):
        raise NeffError("NEFF section 'model' must name the model, its compiler, inputs and outputs")
    program, prologue = _programs(sections)
    macs, least_ps, repeats = _work(decode_json(sections["work"], "work")) if "work" in sections else (None, None, {})
    return Neff(
        name=model["name"],
        program=program,
        device=_device(decode_json(sections["device"], "device")),
        inputs=infos_from_json(model["inputs"]),
        outputs=infos_from_json(model["outputs"]),
        options=decode_json(sections["options"], "options"),
        compiler_version=str(model["compiler"]),
        placement=placement_from_json(decode_json(sections["placement"], "placement").get("rows")),
        memory=_memory(decode_json(sections["memory"], "memory")),
        macs=macs,
        least_ps=least_ps,
        repeats=repeats,
        prologue=prologue.body,
        weights=_weights(sections, program.tensors),  # last: of what is refused before, nothing large is decompressed
    )


def _programs(sections: Sections) -> tuple[Program, Program]:
    """What runs every time, and what runs once before."""
    tensors = _decode(decode_tensors, sections, "tensors")
    origins = _decode(decode_origins, sections, "origins")
    try:
        program, prologue = (Program(tensors, origins, _body(sections, prefix)) for prefix in (STREAM, PROLOGUE))
        check_form(program)
        check_form(prologue)
        if prologue.body:
            check_residents(prologue, program)
    except ProgramError as error:
        raise NeffError(f"NEFF holds no sound program: {error}") from error
    return program, prologue


def _body(sections: Sections, prefix: str) -> tuple[Node, ...]:
    present = [queue for queue in QUEUES if prefix + queue in sections]
    return join({queue: _decode(partial(decode_stream, queue=queue), sections, prefix + queue) for queue in present})


def _decode(decode: Callable[[bytes], T], sections: Sections, name: str) -> T:
    try:
        return decode(bytes(sections[name]))
    except NeffError as error:
        raise NeffError(f"NEFF section '{name}': {error}") from error


def _device(raw: dict[str, Any]) -> Device:
    try:
        return device_from_dict(raw, str(raw.get("name")))
    except DeviceError as error:
        raise NeffError(f"NEFF section 'device': {error}") from error


def _memory(raw: dict[str, Any]) -> dict[str, int]:
    if not all(type(value) is int for value in raw.values()):
        raise NeffError("NEFF section 'memory' must give whole numbers of bytes")
    return raw


def _work(raw: dict[str, Any]) -> tuple[int, int | None, dict[str, int]]:
    macs, least_ps, repeats = raw.get("macs"), raw.get("least_ps"), raw.get("repeats", {})
    if type(macs) is not int or not 0 <= macs < _MAX_MACS:
        raise NeffError(f"NEFF section 'work' must give 0 to 2^62 multiply-accumulates, not {macs!r:.40}")
    if least_ps is not None and (type(least_ps) is not int or not 0 <= least_ps < _MAX_PS):
        raise NeffError(f"NEFF section 'work' must give 0 to 2^62 picoseconds of work, not {least_ps!r:.40}")
    if type(repeats) is not dict or not all(type(value) is int and value > 1 for value in repeats.values()):
        raise NeffError("NEFF section 'work' must say how often values repeat by the names of weights, from 2 on")
    return macs, least_ps, repeats


def _weights(sections: Sections, tensors: tuple[DramTensor, ...]) -> dict[str, NDArray[Any]]:
    wanted = [tensor for tensor in tensors if tensor.kind == "weight"]
    ends = list(accumulate((t.size_bytes + -t.size_bytes % ALIGNMENT for t in wanted), initial=0))
    section = sections.sized(WEIGHTS, ends[-1])
    weights: dict[str, NDArray[Any]] = {}
    for tensor, offset in zip(wanted, ends, strict=False):
        values = np.frombuffer(section[offset : offset + tensor.size_bytes], DTYPES[tensor.dtype], prod(tensor.shape))
        weights[tensor.name] = values.reshape(tensor.shape)
    return weights
