"""Time: what starts when, what waits for what, and that more of anything never makes a program slower."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sim.convnet import Builder, Image
from tests.sim.small import dram, load, program, psum, sbuf, store
from tests.sim.strategies import programs
from tests.sim.sync import serialise
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.isa import QUEUES, Activation, DmaCopy, Matmul, TensorCopy, TensorTensor, Wait, affine
from tvm_neuron.program import Loop, Program
from tvm_neuron.sim import time_program, trace_program
from tvm_neuron.sim.clock import OWN
from tvm_neuron.sim.timing import clocked

DEVICE = replace(load_device("inf1"), instruction_overhead_cycles=0)  # PE and ACT at 1 GHz: one cycle is 1000 ps
NS = 1000
MM = Matmul(sbuf(0), sbuf(0), psum(0), (), origin=1)  # 4 cycles
ACT = Activation(sbuf(256), psum(0), 1.0, 0.0, "relu", origin=1)  # 64 cycles
LATENCY = DEVICE.instruction_latency_cycles
DMA = DmaCopy(sbuf(0, 32), dram(0), 0).cost(DEVICE)


def conv() -> Program:
    builder = Builder()
    x, y = Image(128, 14, 14, 1, 40000), Image(128, 14, 14, 0, 60000)
    builder.load(x, "x")
    builder.conv("conv", x, y, 3, 1, 0)
    builder.store(y, "y")
    return serialise(builder.program())


def wait(queue: str, count: int) -> tuple[Wait, ...]:
    return (Wait(queue, affine(count), count),)


def test_engines_run_side_by_side() -> None:
    timing = time_program(program(MM, MM, ACT), DEVICE)
    assert timing.busy_ps == {"pe": 8 * NS, "act": 64 * NS}
    assert timing.total_ps == (64 + LATENCY) * NS
    assert timing.stalls_ps == {}
    assert timing.cycles == 64 + LATENCY


def test_a_wait_holds_until_the_result_is_there() -> None:
    timing = time_program(program(MM, ACT.replace(waits=wait("pe", 1))), DEVICE)
    assert timing.stalls_ps == {"act": {"pe": (4 + LATENCY) * NS}}
    assert timing.total_ps == (4 + LATENCY + 64 + LATENCY) * NS


def test_an_engine_waits_for_its_own_result() -> None:
    one = TensorCopy(sbuf(64), sbuf(0))
    timing = [
        time_program(program(one, TensorTensor(sbuf(128), source, sbuf(0), "add")), DEVICE)
        for source in (sbuf(0), sbuf(64))
    ]
    assert timing[0].stalls_ps == {}
    assert list(timing[1].stalls_ps["pool"]) == ["own result"]


def test_a_part_of_its_own_result_is_waited_for_too() -> None:
    wrote = TensorCopy(sbuf(64), sbuf(0))
    behind = sbuf(64 + 3 * 2, 1)  # the last of the four values written
    reads = [time_program(program(wrote, TensorCopy(sbuf(128, 1), tile)), DEVICE) for tile in (behind, sbuf(72, 1))]
    assert list(reads[0].stalls_ps["pool"]) == ["own result"]
    assert reads[1].stalls_ps == {}


def test_a_loop_waits_for_its_own_result_from_the_second_iteration_on() -> None:
    summed = TensorTensor(sbuf(64), sbuf(64), sbuf(0), "add")
    stalls = {count: time_program(program(Loop(count, (summed,))), DEVICE).stalls_ps for count in (1, 2, 5)}
    assert stalls[1] == {}
    assert stalls[5]["pool"]["own result"] == 4 * stalls[2]["pool"]["own result"]
    moving = sbuf(affine(64, ((0, 64),)))
    assert time_program(program(Loop(5, (TensorTensor(moving, moving, sbuf(0), "add"),))), DEVICE).stalls_ps == {}


def test_transfers_share_the_bandwidth_and_overlap_their_start() -> None:
    one = time_program(program(DmaCopy(sbuf(0, 32), dram(0), 0)), DEVICE).total_ps
    assert one == (DEVICE.dma_start_ns + DMA.busy_cycles) * NS
    copies = [DmaCopy(sbuf(64 * ring, 32), dram(0), ring) for ring in range(4)]
    assert time_program(program(*copies), DEVICE).total_ps == one + 3 * DMA.busy_cycles * NS


def test_a_prefetch_does_not_queue_behind_a_store_that_is_not_ready() -> None:
    slow = Loop(200, (MM,))
    late = DmaCopy(dram(1), sbuf(0, 32), 0, waits=wait("pe", 200))
    prefetch = DmaCopy(sbuf(64, 32), dram(0), 1)
    events = trace_program(program(slow, late, prefetch), DEVICE)
    assert events[-1].start_ps == DEVICE.dma_start_ns * NS < events[-2].start_ps


def test_what_is_counted() -> None:
    body = conv()
    timing = time_program(body, DEVICE)
    assert timing.macs == 128 * 128 * 9 * 14 * 14
    weights = sum(tensor.size_bytes for tensor in body.tensors if tensor.kind == "weight")
    assert timing.dram_bytes_by_kind == {"weight": weights, "input": 128 * 196 * 2, "output": 128 * 196 * 2}
    assert timing.dram_written_bytes == 128 * 196 * 2
    assert timing.dram_read_bytes == weights + 128 * 196 * 2
    by_engine = {"pe": timing.busy_ps["pe"], "act": timing.busy_ps["act"]}
    assert {engine: timing.origins[1].busy_ps[engine] for engine in by_engine} == by_engine
    assert timing.origins[0].start_ps == 0
    assert timing.origins[0].end_ps <= timing.origins[1].end_ps <= timing.total_ps
    assert timing.total_ps >= 1e12 * timing.macs / DEVICE.peak_macs_per_second


FASTER = ["pe_clock_hz", "act_clock_hz", "pool_clock_hz", "dram_bytes_per_second"]
SLOWER = [
    "instruction_latency_cycles",
    "instruction_overhead_cycles",
    "dma_start_ns",
    "dma_descriptor_ns",
    "elementwise_min_cycles",
    "matmul_min_cycles",
]


def changed(device: Device, name: str, factor: int) -> Device:
    return replace(device, **{name: getattr(device, name) * factor})


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_time_follows_every_number_of_the_device(chip: str) -> None:
    device, body = load_device(chip), conv()
    usual = time_program(body, device).total_ps
    assert all(time_program(body, changed(device, name, 2)).total_ps <= usual for name in FASTER)
    assert all(time_program(body, changed(device, name, 2)).total_ps >= usual for name in SLOWER)
    assert time_program(body, changed(device, "pe_clock_hz", 2)).total_ps < usual


@pytest.mark.slow
@given(programs(), st.sampled_from(FASTER + SLOWER))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_random_program_gets_slower_on_a_faster_device(body: Program, name: str) -> None:
    body = serialise(body)
    usual = time_program(body, DEVICE)
    other = time_program(body, changed(DEVICE, name, 3))
    assert (other.total_ps <= usual.total_ps) if name in FASTER else (other.total_ps >= usual.total_ps)
    assert max(usual.busy_ps.values()) <= usual.total_ps
    assert usual == time_program(body, DEVICE)


def test_what_a_quicker_engine_can_cost() -> None:
    """Transfers take the DRAM in the order in which they get ready.

    With a PE of four times the clock the store gets ready before the load that ACT waits for, and goes first. So a
    quicker device can cost time: at most the turn of every transfer that went ahead.
    """
    store_ = DmaCopy(dram(1), sbuf(0, 32), 0, waits=wait("pe", 100))
    load_ = DmaCopy(sbuf(64, 32), dram(0), 1, waits=wait("act", 1))
    work = ACT.replace(waits=wait("dma1", 1))
    body = program(Loop(100, (MM,)), ACT, store_, load_, Loop(20, (work,)))
    usual, quicker = (time_program(body, changed(DEVICE, "pe_clock_hz", by)).total_ps for by in (1, 4))
    assert usual < quicker <= usual + DMA.busy_cycles * NS


def test_what_takes_longer_than_can_be_counted_is_refused() -> None:
    device = replace(DEVICE, act_clock_hz=1, elementwise_min_cycles=2**48)
    with pytest.raises(ProgramError, match=r"an instruction takes \d+ ps; at most 2305843009213693952 can be counted"):
        time_program(program(ACT), device)


def test_the_trace_has_every_instruction_once() -> None:
    body = program(load(), Loop(3, (MM, ACT)), store(256))
    events = trace_program(body, DEVICE)
    assert [event.mnemonic for event in events] == ["dma_copy", *["nc_matmul", "activation"] * 3, "dma_copy"]
    assert [(event.queue, event.start_ps, event.end_ps) for event in events[1:2]] == [("pe", 0, 4 * NS)]


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_every_start_has_its_reason(drawn: Program) -> None:
    """What came just before it: the end of the one before, the completion that it waited for, or others' turns."""
    body = serialise(drawn)
    _, dynamic, clock = clocked(body, DEVICE)
    for code, queue in enumerate(QUEUES):
        free, before = 0, -1
        for row in np.flatnonzero(dynamic.queue == code).tolist():
            ready = free + int(clock.waited[row])
            if clock.waited[row] and clock.why[row] == OWN:
                assert ready == clock.done[before]
            elif clock.waited[row]:
                others = dynamic.queue == clock.why[row]
                assert ready in clock.done[others].tolist() + clock.end[others].tolist()
            assert clock.waited[row] == 0 or clock.why[row] >= 0
            if queue.startswith("dma"):
                start_ns = dynamic.statics[dynamic.number[row]].cost(DEVICE).latency_cycles
                assert clock.start[row] == ready + start_ns * NS + clock.turn[row]
            else:
                assert (clock.start[row], clock.turn[row]) == (ready, 0)
            free, before = ready if queue.startswith("dma") else int(clock.end[row]), row
