"""dram_traffic: what one run of a program moves between DRAM and the core, tensor by tensor."""

from collections.abc import Iterator
from math import prod

from tvm_neuron.isa import DramTile
from tvm_neuron.program.program import Program


def dram_traffic(program: Program) -> Iterator[tuple[int, str, int]]:
    """(index of a tensor, "reads" or "writes", bytes) of every access of an instruction, all its runs together."""
    for counts, instruction in program.instructions():
        for _, kind, tile in instruction.tiles():
            if isinstance(tile, DramTile):
                yield tile.tensor, kind.role, prod(counts) * instruction.moved_bytes(tile)
