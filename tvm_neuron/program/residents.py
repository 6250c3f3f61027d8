"""resident_bytes, check_residents: the part of SBUF that a prologue fills once and that no run may write."""

from collections.abc import Iterator

from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import Instruction, Tile
from tvm_neuron.program.dynamic import who
from tvm_neuron.program.program import Program


def resident_bytes(prologue: Program) -> range:
    """The bytes of each SBUF partition from the first to the last that the prologue writes."""
    spans = [span for _, span in _written(prologue)]
    return range(min((span.start for span in spans), default=0), max((span.stop for span in spans), default=0))


def check_residents(prologue: Program, program: Program) -> None:
    """A prologue only fills SBUF, and what it put there stays as it is.

    Raises:
        ProgramError: the prologue writes something else, or the program writes where the prologue did.
    """
    for _, instruction in prologue.instructions():
        if any(not isinstance(tile, Tile) or tile.space != "sbuf" for _, tile in instruction.destinations):
            raise ProgramError(f"{who(prologue, instruction)}: a prologue writes SBUF only, since nothing else stays")
    kept = resident_bytes(prologue)
    for instruction, span in _written(program):
        if span.start < kept.stop and kept.start < span.stop:
            raise ProgramError(
                f"{who(program, instruction)}: writes bytes {span.start} to {span.stop} of SBUF partitions; "
                f"{kept.start} to {kept.stop} hold what was loaded once for all runs"
            )


def _written(program: Program) -> Iterator[tuple[Instruction, range]]:
    """Every instruction that writes SBUF, and the bytes of a partition from the first to the last of them."""
    for counts, instruction in program.instructions():
        for _, tile in instruction.destinations:
            if isinstance(tile, Tile) and tile.space == "sbuf":
                low, high = tile.offset.span(counts)
                yield instruction, range(low, high + tile.extent_bytes)
