"""Without a wait that matters, the race checker refuses the program and names both operators."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.stages.networks import compile_model, conv_relu_conv, images, run, small_network
from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.isa import Instruction
from tvm_neuron.neff import Neff
from tvm_neuron.program import Loop, Node, Program
from tvm_neuron.program.race import check_races

RACE = re.compile(r"^Data race between Op1 '(\w+) of (.+?)' and Op2 '(\w+) of (.+?)': both access ")


@pytest.fixture(scope="module")
def compiled() -> Neff:
    return compile_model(conv_relu_conv())


def without_one_wait(program: Program) -> Iterator[tuple[Instruction, Program]]:
    """Every instruction and program that lacks a single wait of it."""
    for number, (_, instruction) in enumerate(program.instructions()):
        for lost in instruction.waits:
            kept = tuple(wait for wait in instruction.waits if wait is not lost)
            changed, _ = _replaced(program.body, number, instruction.replace(waits=kept))
            yield instruction, program.with_body(changed)


def _replaced(body: tuple[Node, ...], number: int, by: Instruction) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            inner, number = _replaced(node.body, number, by)
            nodes.append(Loop(node.count, inner))
        else:
            nodes.append(by if number == 0 else node)
            number -= 1
    return tuple(nodes), number


def race(program: Program, device: Device) -> str:
    """What the checker says of a program, "" if it is free of races."""
    try:
        check_races(program, device)
    except ProgramError as error:
        return str(error)
    return ""


def test_without_the_wait_between_convolution_and_relu(compiled: Neff) -> None:
    """The activation that empties PSUM would not wait for the matmuls that fill it."""
    broken = [p for i, p in without_one_wait(compiled.program) if i.mnemonic == "activation"]
    messages = [race(program, compiled.device) for program in broken]
    assert any("Data race between Op1 'nc_matmul of conv1' and Op2 'activation of conv1'" in m for m in messages)


def test_without_the_wait_between_two_convolutions(compiled: Neff) -> None:
    """The second convolution would not wait for what the first one makes."""
    messages = []
    for instruction, broken in without_one_wait(compiled.program):
        if instruction.mnemonic == "nc_matmul" and compiled.program.origins[instruction.origin].name == "conv2":
            with pytest.raises(ProgramError) as caught:
                check_races(broken, compiled.device)
            messages.append(str(caught.value))
    assert any("Op1 'activation of conv1' and Op2 'nc_matmul of conv2'" in message for message in messages)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("name", ["conv_relu_conv", "small_network"])
def test_every_wait_matters(name: str, chip: str) -> None:
    """A wait less is refused with both operators' names: what other waits cover isn't waited for again."""
    made = compile_model({"conv_relu_conv": conv_relu_conv, "small_network": small_network}[name](), f"neuron/{chip}")
    device = load_device(chip)
    check_races(made.program, device)
    names = {origin.name for origin in made.program.origins}
    messages = [race(broken, device) for _, broken in without_one_wait(made.program)]
    assert messages
    for message in messages:
        found = RACE.match(message)
        assert found, message
        assert {found[2], found[4]} <= names


def test_a_refused_program_can_give_other_numbers() -> None:
    """The race is no fault of the checker: engines that run far ahead read what is not there yet."""
    small = compile_model(small_network())
    wanted = run(small, images())["y"].tobytes()
    changed = 0
    for _, broken in without_one_wait(small.program):
        late = replace(small, program=broken)
        changed += any(run(late, images(), "strict", seed)["y"].tobytes() != wanted for seed in range(2))
    assert changed >= 10
