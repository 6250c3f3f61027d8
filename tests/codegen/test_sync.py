"""Waits that the compiler puts in: no later than they must be, also before a ring of buffers is full."""

import pytest

from tests.sim.small import dram, program, sbuf
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DmaCopy, TensorCopy, affine
from tvm_neuron.program import Loop
from tvm_neuron.program.race import check_races
from tvm_neuron.sim import time_program, trace_program

DEVICE = load_device("inf2")


def test_a_ring_of_two_is_loaded_two_ahead() -> None:
    slot = sbuf(affine(0, [(0, 64)], wrap=128), 32)
    body = program(Loop(6, (DmaCopy(slot, dram(0), 0), TensorCopy(sbuf(256, 32), slot))))
    synchronised = synchronise(body, DEVICE)
    ((load, _),) = [node.body for node in synchronised.body]
    (wait,) = load.waits
    # The copy of iteration i - 2 is number i - 1 of its queue; the first two loads wait for nothing.
    assert [wait.count.at([i]) for i in range(6)] == [-1, 0, 1, 2, 3, 4]
    check_races(synchronised, DEVICE)
    starts = [event.start_ps for event in trace_program(synchronised, DEVICE) if event.mnemonic == "dma_copy"]
    assert starts[1] < time_program(body, DEVICE).busy_ps["dma0"] + DEVICE.dma_start_ns * 1000  # right behind the first


def test_what_the_first_iterations_wait_for_holds_no_other() -> None:
    """Both slots are read before the loop, so that its first two loads wait; all others are still two ahead."""
    slot = sbuf(affine(0, [(0, 64)], wrap=128), 32)
    body = program(
        TensorCopy(sbuf(512, 64), sbuf(0, 64)), Loop(6, (DmaCopy(slot, dram(0), 0), TensorCopy(sbuf(256, 32), slot)))
    )
    synchronised = synchronise(body, DEVICE)
    load = next(node.body[0] for node in synchronised.body if isinstance(node, Loop))
    assert [max(min(wait.count.at([i]), wait.cap) for wait in load.waits) for i in range(6)] == [1, 1, 2, 3, 4, 5]
    check_races(synchronised, DEVICE)


@pytest.mark.parametrize("at", [DEVICE.sbuf_bytes_per_partition - 64, -64])
def test_what_reaches_out_of_its_memory_is_told_before_waits_are_looked_for(at: int) -> None:
    """A defect of ours; native code, which marks what is accessed, would write past its own memory."""
    out = sbuf(affine(at, [(0, 64)]), 32)
    with pytest.raises(ProgramError, match=r"sbuf.bfloat16\{.*reaches out of its memory"):
        synchronise(program(Loop(6, (TensorCopy(out, sbuf(0, 32)),))), DEVICE)
