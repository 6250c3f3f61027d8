"""What the arithmetic on one tile works with: where instructions go and temporaries come from."""

from dataclasses import replace
from typing import Protocol

from tvm_neuron.isa import Instruction, Tile
from tvm_neuron.isa.tile import Dims

Operand = Tile | float


class Emits(Protocol):
    """Where instructions go."""

    def emit(self, instruction: Instruction, /) -> None:
        """Takes the next instruction."""


class Temporaries(Protocol):
    """Where temporary tiles come from."""

    def tile(self, partitions: int, dims: Dims, /) -> Tile:
        """A new float32 tile."""


def spread(tile: Tile, dims: Dims) -> Tile:
    """The tile; if it has one value for each partition, reading that again and again."""
    return replace(tile, dims=tuple((0, count) for _, count in dims)) if tile.free_elems == 1 else tile
