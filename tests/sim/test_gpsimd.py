"""GpSimd is an engine of its own: it and Vector have SBUF in turns where the chip says so; not every chip has it."""

import pytest

from tests.sim.small import program, psum, sbuf
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, AffineSelect, TensorCopy
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import time_program, trace_program
from tvm_neuron.sim.clock import duration_ps

SELECT = AffineSelect(sbuf(1024), sbuf(1024), 0.0, (0, 1, *(-1 for _ in sbuf(0).dims)), "is_ge")
COPY = TensorCopy(sbuf(256), sbuf(0))


def starts(chip: str, *body) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for event in trace_program(program(*body), load_device(chip)):
        found.setdefault(event.queue, []).append(event.start_ps)
    return found


@pytest.mark.parametrize("chip", ["inf2", "trn1", "trn2"])
def test_vector_and_gpsimd_take_turns_at_sbuf(chip: str) -> None:
    device = load_device(chip)
    copying = duration_ps(COPY.cost(device).busy_cycles, device.pool_clock_hz)
    begin = copying if chip != "trn2" else 0  # which has room for both
    assert starts(chip, SELECT, COPY) == {"gpsimd": [begin], "pool": [0]}
    stalls = time_program(program(SELECT, COPY), device).stalls_ps
    assert stalls == ({"gpsimd": {"pool": copying}} if begin else {})


def test_who_could_begin_first_has_sbuf_first() -> None:
    device = load_device("trn1")
    busy = duration_ps(SELECT.cost(device).busy_cycles, device.gpsimd_clock_hz)
    short = duration_ps(COPY.cost(device).busy_cycles, device.pool_clock_hz)
    # GpSimd asks at 0, behind Vector's first copy; the second one could begin later only
    assert starts("trn1", COPY, COPY, SELECT) == {"pool": [0, short + busy], "gpsimd": [short]}


def test_scalar_and_psum_know_no_turns_with_gpsimd() -> None:
    found = starts("trn1", SELECT, Activation(sbuf(256), sbuf(0), 1.0, 0.0, "relu"), TensorCopy(psum(0), psum(64)))
    assert found["act"] == found["gpsimd"] == found["pool"] == [0]


def test_a_chip_without_gpsimd_refuses_its_instructions_by_name() -> None:
    with pytest.raises(ProgramError, match="inf1 has no GpSimd engine"):
        verify(program(SELECT), load_device("inf1"))
