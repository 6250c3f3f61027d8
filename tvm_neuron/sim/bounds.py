"""check_all_bounds: no tile of a program leaves its memory in any iteration."""

from collections.abc import Sequence

from tvm_neuron.hw import Device
from tvm_neuron.isa import DramTile, Instruction
from tvm_neuron.isa.limits import check_bounds, check_dram_bounds
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import who


def check_all_bounds(program: Program, device: Device) -> None:
    """Checks every operand over all iterations, which makes a check at each access unnecessary.

    Raises:
        ProgramError: a tile leaves its memory; names the instruction, its model operator, the range and the limit.
    """
    for counts, instruction in program.instructions():
        check_instruction_bounds(instruction, program, device, counts)


def check_instruction_bounds(instruction: Instruction, program: Program, device: Device, counts: Sequence[int]) -> None:
    """Checks the operands of one instruction."""
    for name, _, tile in instruction.tiles():
        label = f"{who(program, instruction)}, operand {name}"
        if isinstance(tile, DramTile):
            tensor = program.tensors[tile.tensor]
            check_dram_bounds(tile, tensor.elems, tensor.name, counts, label)
        else:
            check_bounds(tile, device, counts, label)
