"""What strict mode and the race checker catch: missing waits, standstill, unset memory, addresses out of bounds."""

import numpy as np
import pytest

from tests.sim.small import dram, load, program, psum, sbuf, store, x
from tests.sim.sync import drop_waits, serialise
from tvm_neuron.errors import InputError, ProgramError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, DmaCopy, Matmul, Wait, affine
from tvm_neuron.program import Loop
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine, time_program

DEVICE = load_device("inf1")
_BANK = psum(affine(0, [(0, 2048)], 0, 4096))
BODY = program(
    load(),
    Loop(4, (
        Matmul(sbuf(0), sbuf(affine(0, [(0, 8)])), _BANK, (), origin=1),
        Activation(sbuf(affine(256, [(0, 8)])), _BANK, 1.0, 0.0, "relu", origin=1),
    )),
    store(256, 16),
)  # fmt: skip
SAFE = serialise(BODY)


def bits(result: dict[str, np.ndarray]) -> bytes:
    return result["y"][:, :16].tobytes()


def test_a_safe_program_gives_the_same_in_every_order() -> None:
    verify(SAFE, DEVICE)
    check_races(SAFE, DEVICE)
    machine = Machine(SAFE, DEVICE, {})
    wanted = bits(machine.run(x()))
    assert all(bits(machine.run(x(), "strict", seed)) == wanted for seed in range(8))


MISSING = [
    ("nc_matmul", 1, "dma0", "dma_copy of load x", "nc_matmul of conv1"),
    ("nc_matmul", 1, "act", "activation of conv1", "nc_matmul of conv1"),
    ("activation", 1, "pe", "nc_matmul of conv1", "activation of conv1"),
    ("dma_copy", 2, "act", "activation of conv1", "dma_copy of store y"),
]


@pytest.mark.parametrize(("mnemonic", "origin", "queue", "one", "two"), MISSING)
def test_a_missing_wait_is_a_data_race(mnemonic: str, origin: int, queue: str, one: str, two: str) -> None:
    broken = drop_waits(SAFE, mnemonic, origin, queue)
    with pytest.raises(ProgramError) as caught:
        check_races(broken, DEVICE)
    assert f"Data race between Op1 '{one}' and Op2 '{two}'" in str(caught.value)
    assert f"completions of {queue}" in str(caught.value)


@pytest.mark.parametrize(("mnemonic", "origin", "queue"), [case[:3] for case in MISSING[:3:2]])
def test_a_missing_wait_changes_the_result_in_strict_mode(mnemonic: str, origin: int, queue: str) -> None:
    machine = Machine(drop_waits(SAFE, mnemonic, origin, queue), DEVICE, {})
    wanted = bits(machine.run(x(), "step"))
    assert any(bits(machine.run(x(), "strict", seed)) != wanted for seed in range(8))


def test_rows_that_interleave_do_not_race() -> None:
    left = Activation(
        sbuf(256).__class__("sbuf", "bfloat16", affine(0), 4, affine(256), ((8, 2), (1, 4))),
        sbuf(0, 8).__class__("sbuf", "bfloat16", affine(0), 4, affine(0), ((8, 2), (1, 4))),
        1.0,
        0.0,
        "copy",
        origin=1,
    )
    right = DmaCopy(
        left.result.__class__("sbuf", "bfloat16", affine(0), 4, affine(264), ((8, 2), (1, 4))),
        left.source.__class__("sbuf", "bfloat16", affine(0), 4, affine(8), ((8, 2), (1, 4))),
        2,
        origin=2,
    )
    first = Wait("dma0", affine(1), 1)
    check_races(program(load(), left.replace(waits=(first,)), right.replace(waits=(first,))), DEVICE)


def test_engines_that_wait_for_each_other_are_named() -> None:
    stuck = program(
        load(),
        Matmul(sbuf(0), sbuf(0), psum(0), (), origin=1, waits=(Wait("act", affine(1), 1),)),
        Activation(sbuf(256), psum(0), 1.0, 0.0, "relu", origin=2, waits=(Wait("pe", affine(1), 1),)),
    )
    with pytest.raises(ProgramError, match="Deadlock: 'nc_matmul of conv1' on pe waits for 1 completions of act"):
        Machine(stuck, DEVICE, {}).run(x(), "strict")
    with pytest.raises(ProgramError, match="Deadlock: 'nc_matmul of conv1' on pe"):
        time_program(stuck, DEVICE)
    with pytest.raises(ProgramError, match=r"nc_matmul of conv1: .* could wait for ever"):
        verify(stuck, DEVICE)
    with pytest.raises(ProgramError, match="nc_matmul of conv1 waits for 1 completions of act"):
        check_races(stuck, DEVICE)


@pytest.mark.parametrize("mode", ["nest", "step", "strict"])
def test_unset_memory_is_nan(mode: str) -> None:
    result = Machine(program(load(), store(64)), DEVICE, {}).run(x(), mode)["y"]
    assert np.isnan(result.astype(np.float32)).all()


@pytest.mark.parametrize("mode", ["nest", "step"])
def test_every_run_starts_on_empty_memory(mode: str) -> None:
    machine = Machine(program(store(0), load()), DEVICE, {})
    for _ in range(2):
        assert np.isnan(machine.run(x(), mode)["y"].astype(np.float32)).all()


def test_out_of_bounds_names_instruction_operator_and_limit() -> None:
    far = program(Loop(5, (Activation(sbuf(affine(98304 - 32, [(0, 8)])), sbuf(0), 1.0, 0.0, "relu", origin=1),)))
    message = "activation of conv1, operand result: bytes 98272 to 98312 of each SBUF partition; inf1 has 98304"
    with pytest.raises(ProgramError, match=message):
        Machine(far, DEVICE, {})
    with pytest.raises(ProgramError, match=message):
        verify(far, DEVICE)
    with pytest.raises(ProgramError, match="elements 0 to 160 of tensor 'x', which has 128"):
        Machine(program(DmaCopy(sbuf(0, 64), dram(0, 0, 64), 0)), DEVICE, {})


def test_inputs_must_be_as_the_table_says() -> None:
    machine = Machine(SAFE, DEVICE, {})
    with pytest.raises(InputError, match=r"input 'x' is missing; the program needs bfloat16\[4, 32\]"):
        machine.run({})
    with pytest.raises(InputError, match=r"input 'x' is float32\[4, 32\]"):
        machine.run({"x": x()["x"].astype(np.float32)})
    with pytest.raises(InputError, match="no input 'z'"):
        machine.run({**x(), "z": x()["x"]})
