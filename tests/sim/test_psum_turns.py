"""Vector (POOL) and Scalar (ACT) access PSUM one after the other: who could begin first has it first."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sim.small import program, psum, sbuf
from tests.sim.strategies import programs
from tests.sim.sync import drop_some_waits, serialise
from tvm_neuron.hw import load_device
from tvm_neuron.isa import QUEUES, Activation, Matmul, TensorCopy, Wait, affine
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import expand
from tvm_neuron.sim import time_program, trace_program
from tvm_neuron.sim.clock import clock_hz, duration_ps, run_clock
from tvm_neuron.sim.dependence import dependent

DEVICE = replace(load_device("inf1"), instruction_overhead_cycles=0)
BUSY = duration_ps(64, DEVICE.act_clock_hz)  # of an instruction on ACT
BUSY_ON_POOL = duration_ps(64, DEVICE.pool_clock_hz)
MM = Matmul(sbuf(0), sbuf(0), psum(256), ())
ACT = Activation(sbuf(256), psum(0), 1.0, 0.0, "relu")
POOL = TensorCopy(sbuf(512), psum(64))


def starts(body: Program) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for event in trace_program(body, DEVICE):
        found.setdefault(event.queue, []).append(event.start_ps)
    return found


def test_both_read_psum_in_turns_and_say_for_whom_they_waited() -> None:
    body = program(POOL, ACT)
    assert starts(body) == {"act": [0], "pool": [BUSY]}
    assert time_program(body, DEVICE).stalls_ps == {"pool": {"act": BUSY}}


def test_to_write_psum_is_to_access_it() -> None:
    write = Activation(psum(0), sbuf(0), 1.0, 0.0, "relu")
    assert starts(program(write, POOL)) == {"act": [0], "pool": [BUSY]}


def test_sbuf_and_the_pe_array_know_no_turns() -> None:
    body = program(Activation(sbuf(256), sbuf(0), 1.0, 0.0, "relu"), POOL, MM)
    assert starts(body) == {"act": [0], "pool": [0], "pe": [0]}


def test_who_could_begin_first_has_it_first() -> None:
    """ACT waits for a product, and asks while POOL has PSUM for the second time: before POOL asks again."""
    late = ACT.replace(waits=(Wait("pe", affine(1), 1),))
    (product,) = starts(program(MM, late))["act"]
    assert BUSY_ON_POOL < product < 2 * BUSY_ON_POOL
    found = starts(program(MM, late, POOL, POOL, POOL))
    assert found["act"] == [2 * BUSY_ON_POOL]
    assert found["pool"] == [0, BUSY_ON_POOL, 2 * BUSY_ON_POOL + BUSY]


@pytest.mark.slow
@given(programs(), st.integers(0, 2**32), st.sampled_from(["inf1", "inf2"]))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_take_what_a_simulation_step_by_step_says(body: Program, seed: int, chip: str) -> None:
    """Of all that could run next, the earliest: no shortcut. Waits are missing, so that engines meet more often."""
    body, device = drop_some_waits(serialise(body), Random(seed), kept=0.3), load_device(chip)
    dynamic = expand(body)
    costs = [instruction.cost(device) for instruction in dynamic.statics]
    waits = dynamic.waits()
    clock, needs_own = run_clock(body, device, dynamic, costs), dependent(dynamic)

    left = [np.flatnonzero(dynamic.queue == code).tolist() for code in range(len(QUEUES))]
    done: list[list[int]] = [[] for _ in QUEUES]
    free = [0] * len(QUEUES)
    shared = {"psum": 0, "dram": 0}
    found = {}
    while any(left):
        ready = []
        for code, rows in enumerate(left):
            if rows and all(count <= len(done[other]) for other, count in waits[rows[0]]):
                times = [done[other][count - 1] for other, count in waits[rows[0]] if count > 0]
                own = done[code][-1] if needs_own[rows[0]] and done[code] else 0
                ready.append((max([free[code], own, *times]), code))
        at, code = min(ready)
        row = left[code].pop(0)
        instruction, cost = dynamic.statics[dynamic.number[row]], costs[dynamic.number[row]]
        hz = clock_hz(device, instruction.engine)
        busy, latency = duration_ps(cost.busy_cycles, hz), duration_ps(cost.latency_cycles, hz)
        if instruction.engine == "dma":
            free[code] = at
            at = max(at + latency, shared["dram"])
            shared["dram"] = at + busy
            done[code].append(at + busy)
        else:
            if instruction.engine in ("act", "pool") and "=psum." in str(instruction):
                at = max(at, shared["psum"])
                shared["psum"] = at + busy
            free[code] = at + busy
            done[code].append(at + busy + latency)
        found[row] = at
    assert clock.start.tolist() == [found[row] for row in range(len(dynamic))]


def test_neuroncore_v3_lets_both_in_at_once() -> None:
    assert {event.start_ps for event in trace_program(program(POOL, ACT), load_device("trn2"))} == {0}
