"""Waits and times by the library: the very numbers that Python finds."""

import resource
from dataclasses import fields, replace
from random import Random
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sim.strategies import programs
from tests.sim.sync import drop_some_waits, serialise
from tvm_neuron.codegen import sync
from tvm_neuron.codegen.sync import as_arrays, synchronise, waits_in_python
from tvm_neuron.hw import Device, load_device
from tvm_neuron.isa import QUEUES
from tvm_neuron.native import Tiles, find_waits
from tvm_neuron.program import Program
from tvm_neuron.program.cells import footprints
from tvm_neuron.program.dynamic import expand
from tvm_neuron.sim.clock import Clock, CoreClock, run_clock
from tvm_neuron.sim.dependence import dependent

DEVICES = {
    "inf1": load_device("inf1"),
    "inf2": load_device("inf2"),
    "both ports": replace(load_device("inf2"), psum_accesses=1, sbuf_accesses=1),
}
SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@given(programs())
@SETTINGS
def test_waits_are_those_of_python(program: Program) -> None:
    device = DEVICES["inf2"]
    dynamic = expand(program)
    tiles, cells = footprints(program, device, dynamic)
    needed, matters = waits_in_python(dynamic, tiles, cells)
    found = find_waits(dynamic.number, dynamic.queue, dynamic.position, as_arrays(tiles, cells), len(QUEUES))
    assert found is not None
    assert np.array_equal(found[0], needed)
    assert np.array_equal(found[1], matters)


def test_memory_is_for_what_is_touched_apart() -> None:
    """Two halves of 2 ** 28 cells, of which a large tensor in DRAM may have more: 48 bytes for each would be 12 GB."""
    cells = 2**28
    halves = [(0, 1, 1, 0, 0), (0, 0, 1, 2, 1), (0, 0, 1, 4, 2)]  # writes all, then reads a half each
    tiles = Tiles(
        first=np.arange(4, dtype=np.int64),
        table=np.array(halves, np.int64).ravel(),
        axes=np.array([cells, 1, cells // 2, 1, cells // 2, 1], np.int64),
        at=np.array([0, 0, cells // 2], np.int64),
        cells=np.array([cells], np.int64),
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    number, queue = np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int8)
    found = find_waits(number, queue, np.zeros(3, np.int64), tiles, len(QUEUES))
    assert found is not None
    assert found[0][:, 0].tolist() == [0, 1, 1]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # in KiB


def by_python(program: Program, device: Device) -> Clock:
    dynamic = expand(program)
    costs = [instruction.cost(device) for instruction in dynamic.statics]
    core = CoreClock(program, device, dynamic, costs, dependent(dynamic))
    while core.run_to_transfer():
        core.transfer()
    return core.result()


@given(programs(), st.integers(0, 2**32), st.sampled_from(list(DEVICES)), st.sampled_from([0.0, 0.3, 1.0]))
@SETTINGS
def test_times_are_those_of_python(program: Program, seed: int, name: str, kept: float) -> None:
    program, device = drop_some_waits(serialise(program), Random(seed), kept), DEVICES[name]
    dynamic = expand(program)
    found = run_clock(program, device, dynamic, [instruction.cost(device) for instruction in dynamic.statics])
    wanted = by_python(program, device)
    for field in fields(wanted):
        one, other = getattr(found, field.name), getattr(wanted, field.name)
        assert np.array_equal(one, other), field.name


@given(programs())
@SETTINGS
def test_without_the_library_a_program_gets_the_same_waits(program: Program) -> None:
    with_it = synchronise(program, DEVICES["inf1"])
    with mock.patch.object(sync, "find_waits", return_value=None):
        assert synchronise(program, DEVICES["inf1"]) == with_it
