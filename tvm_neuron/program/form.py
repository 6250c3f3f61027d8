"""check_form: every number in a program points at something; what both readers of programs check first.

Whether the program also keeps the device's limits and is free of races is for `verify` and `race`.
"""

from collections.abc import Sequence

from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import QUEUES, Affine, DramTile, Instruction
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.isa.operand import FirstKind, UintKind
from tvm_neuron.program.program import Program

# Of numbers in addresses, and in waits: sums over the iterations that can be looked at still are integers of 64 bits.
_MOST, _MOST_COUNT = 2**48, 2**32
TENSOR_KINDS = ("input", "output", "weight", "scratch")


def check_form(program: Program) -> None:
    """Refuses references to what isn't there.

    Raises:
        ProgramError: a number beyond all memories; an unknown dtype, tensor kind or queue; an empty tensor; a missing
            tensor, origin or loop.
    """
    for index, tensor in enumerate(program.tensors):
        who = f"tensor {index} '{tensor.name}'"
        if tensor.kind not in TENSOR_KINDS:
            raise ProgramError(f"{who} is of kind '{tensor.kind}'; it must be one of {', '.join(TENSOR_KINDS)}")
        _check_dtype(tensor.dtype, who)
        if any(extent < 1 for extent in tensor.shape):
            raise ProgramError(f"{who} has shape {list(tensor.shape)}; every extent must be at least 1")
    for counts, instruction in program.instructions():
        _check_instruction(instruction, program, len(counts))


def _check_instruction(instruction: Instruction, program: Program, depth: int) -> None:
    who = instruction.mnemonic
    if not 0 <= instruction.origin < len(program.origins):
        raise ProgramError(f"{who}: origin {instruction.origin} is not in the table of {len(program.origins)} origins")
    for name, kind in instruction.kinds():
        value = getattr(instruction, name)
        if isinstance(kind, UintKind) and not kind.low <= value <= kind.high:
            raise ProgramError(f"{who}.{name}: {value} is outside [{kind.low}, {kind.high}]")
        if isinstance(kind, FirstKind) and any(not 0 <= loop < depth for loop in value or ()):
            raise ProgramError(f"{who}.{name}: loops {kind.print(value)}, but the instruction stands in {depth} loops")
    for name, _, tile in instruction.tiles():
        _check_dtype(tile.dtype, f"{who}.{name}")
        _check_affine(tile.offset, depth, f"{who}.{name}")
        _check_sizes([number for dim in tile.dims for number in dim], _MOST, f"{who}.{name}")
        if not isinstance(tile, DramTile):
            _check_affine(tile.partition, depth, f"{who}.{name}")
            _check_sizes([tile.partitions, tile.skew], _MOST, f"{who}.{name}")
        elif not 0 <= tile.tensor < len(program.tensors):
            raise ProgramError(
                f"{who}.{name}: tensor {tile.tensor} is not in the table of {len(program.tensors)} tensors"
            )
    for wait in instruction.waits:
        if wait.queue not in QUEUES:
            raise ProgramError(f"{who}.wait: no queue '{wait.queue}'; the queues are {', '.join(QUEUES)}")
        _check_affine(wait.count, depth, f"{who}.wait")
        _check_sizes([wait.cap, *(step for _, step in wait.count.terms)], _MOST_COUNT, f"{who}.wait")


def _check_dtype(dtype: str, who: str) -> None:
    if dtype not in DTYPES:
        raise ProgramError(f"{who} has dtype '{dtype}'; the hardware knows {', '.join(DTYPES)}")


def _check_sizes(numbers: Sequence[int], most: int, who: str) -> None:
    for number in numbers:
        if abs(number) > most:
            raise ProgramError(f"{who}: holds {number}; at most {most} is possible")


def _check_affine(value: Affine, depth: int, who: str) -> None:
    _check_sizes((value.base, value.phase, value.wrap), _MOST, who)
    if not value.terms and not value.phase:
        return
    _check_sizes([step for _, step in value.terms], _MOST, who)
    if any(not 0 <= loop < depth for loop, _ in value.terms):
        raise ProgramError(f"{who}: address {value} counts a loop that is not around it; it stands in {depth} loops")
    if len({loop for loop, _ in value.terms}) != len(value.terms) or (value.phase and not value.wrap):
        raise ProgramError(f"{who}: address {value} names a loop twice, or a phase without a ring")
