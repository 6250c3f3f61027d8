"""Every instant of a run belongs to one operator: the whole time is given out, by the documented rule."""

from random import Random

import numpy as np
from hypothesis import given

from tests.neff.samples import add_relu
from tests.program.strategies import seeds
from tvm_neuron.profile.attribution import attribute, wall_ps_by_origin
from tvm_neuron.sim import time_program
from tvm_neuron.sim.timing import clocked

ENGINES = 4


@given(seeds)
def test_the_rule_instant_by_instant(rng: Random) -> None:
    rows = []
    for engine in range(ENGINES):
        at = 0
        for _ in range(rng.randint(0, 5)):
            at += rng.randint(0, 6)
            end = at + rng.randint(0, 6)
            rows.append((at, end, engine, rng.randrange(5)))
            at = end
    rng.shuffle(rows)
    lasting = [row for row in rows if row[1] > row[0]]
    if not lasting:
        return
    total = max(end for _, end, _, _ in rows) + rng.randint(0, 3)
    columns = np.array(rows, np.int64).T
    lengths, owners = attribute(columns[0], columns[1], columns[2], columns[3], total)
    assert lengths.sum() == total
    assert len(np.repeat(owners, lengths)) == total
    for instant, owner in enumerate(np.repeat(owners, lengths).tolist()):
        assert owner in allowed(lasting, instant)


def allowed(rows: list[tuple[int, int, int, int]], instant: int) -> set[int]:
    """Who may own the picosecond from `instant` on; several only where instructions start or end together."""
    busy = [row for row in rows if row[0] <= instant < row[1]]
    if busy:
        first = min(engine for _, _, engine, _ in busy)
        return {origin for _, _, engine, origin in busy if engine == first}
    later = [row for row in rows if row[0] >= instant]
    if later:
        soonest = min(start for start, _, _, _ in later)
        return {origin for start, _, _, origin in later if start == soonest}
    latest = max(end for _, end, _, _ in rows)
    return {origin for _, end, _, origin in rows if end == latest}


def test_a_program_without_instructions_takes_no_time() -> None:
    none = np.zeros(0, np.int64)
    assert [len(part) for part in attribute(none, none, none, none, 0)] == [0, 0]


def test_operators_of_a_program_add_up_to_its_latency() -> None:
    neff = add_relu()
    timing, dynamic, clock = clocked(neff.program, neff.device)
    wall = wall_ps_by_origin(neff.program, dynamic, clock)
    assert wall.sum() == timing.total_ps == time_program(neff.program, neff.device).total_ps
    assert all(wall > 0)
