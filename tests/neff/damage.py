"""Damaged NEFFs: files changed in one of several ways, most of which leave every checksum right."""

import dataclasses
import json
import struct
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

from tests.neff.samples import reseal, sealed
from tests.program.strategies import random_operand
from tvm_neuron import neff
from tvm_neuron.errors import NeffError, ProgramError
from tvm_neuron.isa import QUEUES, Instruction
from tvm_neuron.isa.dtypes import CODES
from tvm_neuron.neff.container import unpack
from tvm_neuron.program import Loop, Node
from tvm_neuron.program.form import TENSOR_KINDS

_TRICKY: tuple[Any, ...] = (
    -1, 0, 1, 2**31, 2**63, 2**64, 10**30, 1e308, float("nan"), None, True, "", "x" * 300, "\ud800", [], {}, [[]],
)  # fmt: skip
_WORDS: tuple[tuple[str, ...], ...] = (QUEUES, CODES, TENSOR_KINDS, ("sbuf", "psum"))


def damaged(rng: Random, data: bytes) -> bytes:
    """`data` changed; a file of several cores mostly within one of them."""
    ways: tuple[Callable[[Random, bytes], bytes], ...] = (
        mutated, cut, _header, _stored, _section, _section, _section, _json, _instruction, _instruction, _instruction,
    )  # fmt: skip
    cores = neff.core_names(data)
    way = rng.choice(ways)
    if cores == [""] or (way is not _instruction and rng.random() < 0.1):
        return way(rng, data)
    name = rng.choice(cores)
    return reseal(data, **{name: way(rng, bytes(unpack(data)[1][name]))})


def mutated(rng: Random, data: bytes) -> bytes:
    """Some bytes changed, removed, doubled or replaced by tricky ones."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(out))
        piece = out[at : at + rng.choice((1, 1, 2, 8, 40))]
        noise = rng.randbytes(len(piece))
        bit = bytes([piece[0] ^ 1 << rng.randrange(8)]) if piece else b""
        change = rng.choice((bit, bit, bytes([rng.randrange(256)]), b"\xff" * 9 + b"\x01", b"", piece * 2, noise))
        out[at : at + len(piece)] = change
    return bytes(out)


def cut(rng: Random, data: bytes) -> bytes:
    """The beginning of a file."""
    return data[: rng.randrange(len(data))]


def _header(rng: Random, data: bytes) -> bytes:
    """A number of the header or of the section table changed, its checksum made right."""
    size = int.from_bytes(data[12:16], "little")
    head = bytearray(data[:size])
    for _ in range(rng.randint(1, 2)):
        at = rng.choice((8, 10, 12, 80, rng.randrange(88, size), rng.randrange(88, size)))
        width = min(struct.calcsize(rng.choice("BHIQ")), size - at)
        now = int.from_bytes(head[at : at + width], "little")
        new = rng.choice((0, 1, 2, 3, now + 1, now - 1, now + 64, now * 2, -1, now ^ 1 << rng.randrange(32)))
        head[at : at + width] = (new % 2 ** (8 * width)).to_bytes(width, "little")
    return sealed(head) + data[size:]


def _stored(rng: Random, data: bytes) -> bytes:
    """Bytes of a section changed as they are stored, compressed or not, and its checksum made right."""
    section = rng.choice([section for section in neff.read_header(data).sections if section.size])
    end = section.offset + section.size
    content = mutated(rng, data[section.offset : end])[: section.size].ljust(section.size, b"\0")
    size = int.from_bytes(data[12:16], "little")
    head = bytearray(data[:size].replace(section.digest, sha256(content).digest()))
    return sealed(head) + data[size : section.offset] + content + data[end:]


def _section(rng: Random, data: bytes) -> bytes:
    """The contents of one section changed; sometimes a section left out or under another name."""
    sections = unpack(data)[1]
    name = rng.choice(list(sections))
    content = bytes(sections[name])
    if rng.random() < 0.9:
        return reseal(data, **{name: mutated(rng, content)})
    other = rng.choice((*sections, "core.0", "core.7", "pipeline", "stream.pe", "prologue.pe"))
    return reseal(data, **({name: None} | ({other: content} if rng.random() < 0.5 else {})))


def _json(rng: Random, data: bytes) -> bytes:
    """A value somewhere in a table of JSON replaced by a tricky one."""
    tables = {name: json.loads(bytes(view)) for name, view in unpack(data)[1].items() if view[:1] == b"{"}
    name = rng.choice([name for name, table in tables.items() if table])
    inner: Any = tables[name]
    key: Any = rng.choice([*inner])
    while rng.random() < 0.8 and isinstance(inner[key], dict | list) and inner[key]:
        inner = inner[key]
        key = rng.choice([*inner]) if isinstance(inner, dict) else rng.randrange(len(inner))
    inner[key] = rng.choice(_TRICKY)
    return reseal(data, **{name: json.dumps(tables[name]).encode()})


def _instruction(rng: Random, data: bytes) -> bytes:
    """A well-formed file whose program differs: in an operand, a wait, how often a loop runs, or a tensor."""
    whole = neff.read(data)
    program = whole.program
    for _ in range(10):  # most of what can't be written is refused by its constructor
        try:
            if rng.random() < 0.2:
                changed = dataclasses.replace(program, tensors=_varied(rng, program.tensors))
            else:
                changed = dataclasses.replace(program, body=_body(rng, program.body, 0))
            return neff.write(dataclasses.replace(whole, program=changed), compress=rng.random() < 0.2)
        except (NeffError, ProgramError, ValueError):
            continue
    return data


def _body(rng: Random, body: tuple[Node, ...], depth: int) -> tuple[Node, ...]:
    if not body:
        return body
    at = rng.randrange(len(body))
    node = body[at]
    if isinstance(node, Instruction):
        node = _operand(rng, node, depth)
    elif rng.random() < 0.2:
        node = Loop(_varied(rng, node.count), node.body)
    else:
        node = Loop(node.count, _body(rng, node.body, depth + 1))
    return (*body[:at], node, *body[at + 1 :])


def _operand(rng: Random, instruction: Instruction, depth: int) -> Instruction:
    name, kind = rng.choice((*instruction.kinds(), ("waits", None)))
    if kind is not None and rng.random() < 0.3:
        return instruction.replace(**{name: random_operand(rng, kind, depth)})
    return instruction.replace(**{name: _varied(rng, getattr(instruction, name))})


def _varied(rng: Random, value: Any) -> Any:
    """The value with one of the numbers or words in it changed, or one item more or less."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = rng.choice([field.name for field in dataclasses.fields(value)])
        return dataclasses.replace(value, **{name: _varied(rng, getattr(value, name))})
    if isinstance(value, tuple) and value:
        at = rng.randrange(len(value))
        new = rng.choice(((), (value[at],) * 2, *[(_varied(rng, value[at]),)] * 6))
        return (*value[:at], *new, *value[at + 1 :])
    if isinstance(value, bool) or value is None:
        return rng.choice((None, (), (0,)))
    if isinstance(value, int):
        return rng.choice((0, 1, 2, 128, value + 1, value - 1, value * 2, value // 2, -value, 2 ** rng.randrange(50)))
    if isinstance(value, str):
        return rng.choice(next((words for words in _WORDS if value in words), (value,)))
    return value
