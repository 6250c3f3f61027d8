"""A compressed NEFF takes memory for what it declares and holds: files that are made to take more are refused."""

import tracemalloc
import zlib
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.neff.samples import random_neff, sealed
from tvm_neuron import neff
from tvm_neuron.errors import NeffError
from tvm_neuron.neff.container import COMPRESSED, MOST_BYTES, pack, unpack
from tvm_neuron.neff.deflate import deflated, inflated

DATA = neff.write(random_neff(Random(5)))
NAMES = [section.name for section in neff.read_header(DATA).sections]
MORE_BYTES = 1 << 22  # that reading a small file takes, but for what its sections become


LARGE = 3 * MOST_BYTES  # of what deflate makes hundreds of times smaller
BOMBS = [zlib.compress(character * LARGE, 1) for character in (bytes(1), b" ", b"[")]


def bomb(name: str, compressed: bytes, says: int) -> bytes:
    """The file with a compressed section, which says that it has `says` bytes."""
    stored = says.to_bytes(8, "little") + compressed
    header, sections = unpack(DATA)
    contents = {each: [bytes(view)] for each, view in sections.items()} | {name: [stored]}
    packed = b"".join(pack(contents, header.compiler_version))
    size = int.from_bytes(packed[12:16], "little")
    head = bytearray(packed[:size])
    text = name.encode()
    at = head.index(bytes([len(text)]) + text, 88) + 1 + len(text)
    assert head[at : at + 4] == bytes(4)
    head[at] = COMPRESSED
    return sealed(head) + packed[size:]


def peak_bytes(data: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(NeffError) as refused:
            neff.read_pipeline(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_no_section_takes_more_than_it_may(name: str) -> None:
    for number, compressed in enumerate(BOMBS):
        for says in (LARGE, MOST_BYTES, 100):
            data = bomb(name, compressed, says)
            assert len(data) < LARGE / 100
            # What is not refused by its size is decompressed as far as that, and no further.
            assert peak_bytes(data) < min(says, MOST_BYTES) + MORE_BYTES + 3 * len(data), (name, number, says)


def test_weights_are_as_the_tensors_say() -> None:
    with pytest.raises(NeffError, match=rf"section 'weights' has {LARGE} bytes; the program's tensors take"):
        neff.read(bomb("weights", BOMBS[0], LARGE))


def test_what_is_large_but_no_weights_is_not_compressed() -> None:
    given = {"options": [bytes(MOST_BYTES + 1)], "weights": [bytes(MOST_BYTES + 1)], "device": [bytes(MOST_BYTES)]}
    header, sections = unpack(b"".join(pack(given, "0.1.0", compress=True)))
    assert {section.name for section in header.sections if section.is_compressed} == {"weights", "device"}
    assert len(sections["options"]) == MOST_BYTES + 1
    assert sections.sized("weights", MOST_BYTES + 1) == bytes(MOST_BYTES + 1)


@settings(max_examples=30)
@given(st.integers(0, 1 << 32), st.lists(st.integers(0, 60_000), min_size=1, max_size=5), st.integers(1, 9))
def test_any_contents_come_back_in_any_pieces(seed: int, sizes: list[int], level: int) -> None:
    rng = np.random.default_rng(seed)
    patch = pytest.MonkeyPatch()
    patch.setattr("tvm_neuron.neff.deflate._PIECE_BYTES", int(rng.integers(1, 70_000)))
    patch.setattr("tvm_neuron.neff.deflate._LEVEL", level)
    content = b"".join(rng.integers(0, rng.integers(1, 256), size, np.uint8).tobytes() for size in sizes)
    try:
        stored = deflated([content])
        if stored is not None:
            assert inflated(memoryview(b"".join(stored)), "x") == content
    finally:
        patch.undo()
