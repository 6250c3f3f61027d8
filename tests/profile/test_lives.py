"""What lies where, and when: as who looks at every byte of every access finds it."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.sim.small import load, program, sbuf, store
from tests.sim.strategies import programs
from tests.sim.sync import serialise
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DramTile, Tile
from tvm_neuron.isa.act import ActivationReduce
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.operand import is_first
from tvm_neuron.profile.lives import find_lives
from tvm_neuron.program import Program, unroll
from tvm_neuron.sim.timing import clocked

DEVICE = load_device("inf1")
GROUP = 32


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_every_byte_of_every_access(drawn: Program) -> None:
    body = serialise(drawn)
    _, dynamic, clock = clocked(body, DEVICE)
    found = find_lives(body, body.with_body(()), DEVICE, dynamic, clock.start, clock.end)
    lives, until, edges, loads = by_bytes(body, clock.start.tolist(), clock.end.tolist())
    assert [(life.place, life.row, life.use, life.end_ps) for life in found.lives] == lives
    assert set(found.edges) == edges
    assert found.loads == loads
    assert all(life.writer.origin == source for (source, _), read in found.edges.items() for life in read)
    for place, group in product(("sbuf", "psum"), (None, *range(DEVICE.partitions // GROUP))):
        times, taken = found.taken(place, group)
        if group and not len(times):
            continue
        assert taken[-1] == 0
        for at, value in zip(times.tolist(), taken.tolist(), strict=True):
            mine = [(n, stop) for (where, here, _), n, stop in until if where == place and group in (None, here)]
            now = [stop for number, stop in mine if found.lives[number].start_ps <= at < min(stop, lives[number][3])]
            assert value == len(now) * GROUP


def by_bytes(body: Program, start: list[int], end: list[int]) -> tuple[list, list, set, set]:
    """(place, row, first use, end) of each life; (byte, life, when it was written over) of all bytes; edges; loads."""
    owner: dict[tuple, int] = {}
    lives: list[list] = []
    until: list[tuple[tuple, int, float]] = []
    edges = set()
    origins, copied = [], []
    readers: dict[int, set[int]] = {}
    for row, (indices, instruction) in enumerate(unroll(body.body)):
        tiles = sorted(instruction.tiles(), key=lambda named: named[1].role != "reads")
        for _, kind, tile in tiles:
            touched = set(bytes_of(tile, indices))
            adds = kind.role == "updates" and not is_first(getattr(instruction, kind.unless), indices)
            if kind.role == "reads" or adds:
                for number in {owner[byte] for byte in touched if byte in owner}:
                    lives[number][3] = max(lives[number][3], end[row])
                    if not adds and lives[number][2] < 0:
                        lives[number][2] = row
                    kind_of = body.tensors[copied[number]].kind if copied[number] >= 0 else ""
                    if kind_of == "input":
                        readers.setdefault(number, set()).add(instruction.origin)
                    elif kind_of != "weight":
                        edges.add((origins[number], instruction.origin))
            else:
                until += [(byte, owner[byte], start[row]) for byte in touched if byte in owner]
                owner |= dict.fromkeys(touched, len(lives))
                place = tile.space if isinstance(tile, Tile) else tile.tensor
                lives.append([place, row, -1, end[row]])
                origins.append(instruction.origin)
                read = [t for _, k, t in tiles if k.role == "reads"]
                is_copy = bool(read) and all(isinstance(t, DramTile) for t in read)
                copied.append(read[0].tensor if is_copy else -1)
    until += [(byte, number, np.inf) for byte, number in owner.items()]
    loads = {(copied[n], each) for n, who in readers.items() if origins[n] in who for each in who}
    edges |= {(origins[n], each) for n, who in readers.items() if origins[n] not in who for each in who}
    return [tuple(life) for life in lives], until, edges, loads


def bytes_of(tile: Tile | DramTile, indices: tuple[int, ...]) -> Iterator[tuple]:
    """(place, group of partitions, byte) of all that a tile touches."""
    size = size_bytes(tile.dtype)
    for steps in product(*(range(0, step * count, step) if step else (0,) for step, count in tile.dims)):
        for byte in range(size):
            if isinstance(tile, DramTile):
                yield tile.tensor, 0, (tile.offset.at(indices) + sum(steps)) * size + byte
            else:
                first = tile.partition.at(indices)
                for group in range(first // GROUP, (first + tile.partitions - 1) // GROUP + 1):
                    yield tile.space, group, tile.offset.at(indices) + sum(steps) * size + byte


def test_both_results_of_an_instruction_have_a_place_of_their_own() -> None:
    both = ActivationReduce(sbuf(64), sbuf(128, 1), sbuf(0), 1.0, 0.0, "relu")
    body = serialise(program(load(), both, store(64, 4), store(128, 1)))
    _, dynamic, clock = clocked(body, DEVICE)
    found = find_lives(body, body.with_body(()), DEVICE, dynamic, clock.start, clock.end).lives
    made = [(life.low, life.high, life.use, life.end_ps) for life in found if life.row == 1]
    assert made == [(64, 72, 2, clock.end[2]), (128, 130, 3, clock.end[3])]
