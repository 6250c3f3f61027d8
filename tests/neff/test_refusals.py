"""Every way in which a NEFF can be unreadable has one clear line."""

import json
import struct
import zlib
from dataclasses import replace
from hashlib import sha256
from random import Random

import pytest

from tests.neff.samples import random_neff, reseal, sealed
from tvm_neuron import neff
from tvm_neuron.errors import NeffError
from tvm_neuron.isa.codec import Writer
from tvm_neuron.neff.container import Pieces, pack, unpack

DATA = neff.write(replace(random_neff(Random(5)), name="net"))
SECTIONS = {section.name: section for section in neff.read_header(DATA).sections}


def test_not_a_neff() -> None:
    for data in (b"", b"PK\x03\x04 a zip", DATA.replace(b"\r\n", b"\n", 1)):
        assert message(data) == "not a NEFF: the file doesn't start with its magic number"


@pytest.mark.parametrize("size", [4, 60, 200, len(DATA) - 1])
def test_truncated(size: int) -> None:
    assert message(DATA[:size]).startswith(f"NEFF is truncated: {size} bytes")


def test_longer_than_it_says() -> None:
    assert message(DATA + b"\0") == f"NEFF is corrupted: {len(DATA) + 1} bytes instead of {len(DATA)}"


@pytest.mark.parametrize("name", [section.name for section in SECTIONS.values() if section.size])
def test_a_corrupted_section_is_named(name: str) -> None:
    data = bytearray(DATA)
    data[SECTIONS[name].offset] ^= 1
    assert message(bytes(data)) == f"NEFF is corrupted: the checksum of its section '{name}' is wrong"


def test_every_other_byte_is_covered() -> None:
    inside = {at for section in SECTIONS.values() for at in range(section.offset, section.offset + section.size)}
    for at in set(range(12, len(DATA))) - inside:
        data = bytearray(DATA)
        data[at] ^= 0x40
        assert message(bytes(data)).startswith(("NEFF is corrupted", "NEFF is truncated")), at


@pytest.mark.parametrize(
    ("major", "words"),
    [
        (2, "is newer than the versions 1.x that are supported here: update tvm_neuron"),
        (0, "is older than the versions 1.x that are supported here: compile the model again"),
    ],
)
def test_another_major_version(major: int, words: str) -> None:
    data = DATA[:8] + struct.pack("<HH", major, 6) + DATA[12:100]
    assert message(data) == f"NEFF version {major}.6, written by compiler 0.1.0, {words}"


def test_a_newer_minor_version_may_have_sections_unknown_here() -> None:
    neff.read(reseal(DATA, extra=b"from the future"))


def compressed(*stored: bytes) -> bytes:
    """A file whose section 'options' is compressed and says so; its content is `stored`."""
    _, sections = unpack(DATA)
    contents: dict[str, Pieces] = {name: [view] for name, view in sections.items()}
    contents["options"] = [bytes(1000)]
    small = b"".join(pack(contents, "0.1.0", compress=True))
    at = next(s for s in neff.read_header(small).sections if s.name == "options")
    kept = small[at.offset : at.offset + at.size]
    damaged = b"".join(stored).ljust(len(kept), b"?")[: len(kept)]
    changed = bytearray(small)
    changed[at.offset : at.offset + at.size] = damaged
    size = int.from_bytes(small[12:16], "little")
    return sealed(bytearray(small[:size].replace(at.digest, sha256(damaged).digest()))) + bytes(changed[size:])


def test_compressed_contents_are_not_trusted() -> None:
    size = struct.Struct("<Q").pack
    assert message(compressed(size(1000), b"no zlib stream")).startswith(
        "NEFF section 'options' can't be decompressed: Error "
    )
    assert message(compressed(size(1 << 22))).startswith(
        f"NEFF section 'options' says it has {1 << 22} bytes, more than "
    )
    assert message(compressed(size(1 << 60))) == (
        f"NEFF section 'options' says it has {1 << 60} bytes compressed; at most {1 << 22} can be"
    )
    for wrong in (999, 1001):
        assert message(compressed(size(wrong), zlib.compress(bytes(1000), 1))) == (
            f"NEFF section 'options' doesn't decompress to the {wrong} bytes that it says it has"
        )


def numbers(*values: int) -> bytes:
    out = Writer()
    for value in values:
        out.uint(value)
    return out.bytes()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"weights": None}, "NEFF has no section 'weights'"),
        ({"weights": b"short"}, "NEFF section 'weights' has 5 bytes; "),
        ({"options": b"{"}, "NEFF section 'options' is not JSON: "),
        ({"options": b"[" * 100_000}, "NEFF section 'options' is not JSON: "),
        ({"options": b'"\\ud800"'}, "NEFF section 'options' is not JSON: "),
        ({"options": b"[]"}, "NEFF section 'options' is not a JSON object"),
        ({"work": b'{"macs":-1}'}, "NEFF section 'work' must give 0 to 2^62 multiply-accumulates, not -1"),
        ({"work": b'{"macs":1,"least_ps":-1}'}, "NEFF section 'work' must give 0 to 2^62 picoseconds of work, not -1"),
        ({"work": b'{"macs":5e300}'}, "NEFF section 'work' must give 0 to 2^62 multiply-accumulates, not 5e+300"),
        ({"work": b'{"macs":4611686018427387904}'}, "NEFF section 'work' must give 0 to 2^62 multiply-accumulates, "),
        (
            {"work": b'{"macs":1,"repeats":{"w":1}}'},
            "NEFF section 'work' must say how often values repeat by the names of weights, from 2 on",
        ),
        (
            {"work": b'{"macs":1,"repeats":{"no such":2}}'},
            "NEFF 'net': it has no weights of which values could repeat: no such",
        ),
        ({"memory": b'{"spill":"much"}'}, "NEFF section 'memory' must give whole numbers of bytes"),
        ({"device": b'{"name":"x"}'}, "NEFF section 'device': device 'x': unknown keys [], missing keys ["),
        ({"model": b"{}"}, "NEFF section 'model' must name the model, its compiler, inputs and outputs"),
        ({"placement": b"{}"}, "NEFF section 'placement' must be a list of rows with the keys name, op, reason, where"),
        (
            {"placement": b'{"rows":[{"name":1,"op":"","where":"","reason":""}]}'},
            "NEFF section 'placement' describes an operator in an unknown way",
        ),
        ({"tensors": numbers(1 << 30)}, f"NEFF section 'tensors': {1 << 30} tensors at byte 5; at most 1048576 can be"),
        ({"tensors": b""}, "NEFF section 'tensors': data end at byte 0 inside a number that starts at 0"),
        ({"tensors": numbers(0, 0)}, "NEFF section 'tensors': the table ends at byte 1 of 2"),
        ({"tensors": numbers(1, 0, 0, 0, 2, 1 << 40, 1 << 40)}, "NEFF section 'tensors': tensor '' of shape ["),
        ({"origins": numbers(1, 1, 0xFF)}, "NEFF section 'origins': "),
        ({"stream__pe": numbers(1, 0, 0x77)}, "NEFF section 'stream.pe': unknown opcode 0x77 at byte 3; "),
        ({"stream__pe": numbers(1 << 30)}, f"NEFF section 'stream.pe': {1 << 30} instructions at byte 5; at most "),
        ({"stream__pe": numbers(*(1, 0, 0, 1) * 18)}, "NEFF section 'stream.pe': loops nest deeper than 16 at byte "),
        ({"stream__pe": numbers(0, 0)}, "NEFF section 'stream.pe': the stream ends at byte 1 of 2"),
        ({"stream__pe": numbers(1, 0, 0, 1 << 40)}, f"NEFF section 'stream.pe': {1 << 40} trips of a loop at byte "),
        ({"origins": numbers(0)}, "NEFF holds no sound program: "),
    ],
)
def test_contents_are_not_trusted(changes: dict[str, bytes | None], expected: str) -> None:
    assert message(reseal(DATA, **changes)).startswith(expected)


def test_a_tensor_described_in_an_unknown_way() -> None:
    row = {"name": "x", "shape": 7, "dtype": "int8"}
    model = json.dumps({"name": "", "compiler": "", "inputs": [row], "outputs": []}).encode()
    assert message(reseal(DATA, model=model)) == "NEFF section 'model' describes a tensor in an unknown way"


def message(data: bytes) -> str:
    with pytest.raises(NeffError) as caught:
        neff.read(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)
