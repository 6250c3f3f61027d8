"""Damaged files give a NeffError or a sound NEFF, and nothing else, whatever the checksums say."""

from random import Random

import pytest

from tests.neff.samples import random_neff, reseal
from tvm_neuron import neff
from tvm_neuron.errors import NeffError

ROUNDS = 2000


def mutate(rng: Random, data: bytes) -> bytes:
    """Some bytes changed, removed, doubled or replaced by tricky ones."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(out))
        piece = out[at : at + rng.choice((1, 1, 2, 8, 40))]
        noise = rng.randbytes(len(piece))
        change = rng.choice((bytes([rng.randrange(256)]), b"\xff" * 9 + b"\x01", b"", piece * 2, noise))
        out[at : at + len(piece)] = change
    return bytes(out)


def is_read(data: bytes) -> bool:
    """Whether it is a NEFF; if so, a sound one, which can be written again."""
    try:
        value = neff.read(data)
    except NeffError as error:
        if "\n" in str(error):
            raise
        return False
    again = neff.write(value)
    assert neff.write(neff.read(again)) == again  # bytes, because an immediate may be NaN
    return True


@pytest.mark.parametrize("seed", range(2))
def test_any_byte_changed(seed: int) -> None:
    rng = Random(seed)
    data = neff.write(random_neff(rng))
    for _ in range(ROUNDS):
        damaged = mutate(rng, data)
        assert damaged == data or not is_read(damaged)


@pytest.mark.parametrize("seed", range(4))
def test_any_section_changed_and_sealed_again(seed: int) -> None:
    rng = Random(seed)
    samples = [neff.write(random_neff(rng)) for _ in range(10)]
    read = 0
    for _ in range(ROUNDS // 2):
        data = rng.choice(samples)
        section = rng.choice(neff.read_header(data).sections)
        content = data[section.offset : section.offset + section.size]
        read += is_read(reseal(data, **{section.name: mutate(rng, content)}))
    assert read > ROUNDS // 100  # some changes mean something: another weight, another immediate
