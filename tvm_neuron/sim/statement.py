"""Statement: what an instruction writes to one tile, inside the loops that are run at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm_neuron.isa import DramTile, Instruction, Tile
from tvm_neuron.isa.operand import ScalarKind, TileKind
from tvm_neuron.sim.access import Access, make_access
from tvm_neuron.sim.region import make_region

AnyTile = Tile | DramTile


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop that is run at once. `key` tells it from another loop of the same depth."""

    key: tuple[int, ...]
    depth: int
    count: int


@dataclass(slots=True)
class Operand:
    """What an instruction reads: an immediate, or a tile and where it lies."""

    value: float = 0.0
    tile: AnyTile | None = None
    access: Access | None = None
    is_scalar: bool = False
    is_private: bool = False  # its value is kept from an earlier statement of the nest


@dataclass(slots=True)
class Statement:
    """`axes` are the loops of the nest around it, outermost first, `counts` those of all loops around it."""

    instruction: Instruction
    written: str  # the operand of it that this is for
    axes: tuple[Axis, ...]
    counts: tuple[int, ...]
    operands: list[Operand]
    tile: AnyTile
    target: Access
    is_update: bool  # it reads what it writes, unless `first` holds
    first: tuple[int, ...] | None  # the condition of that; a plain write is always first
    is_private: bool = False
    summed: tuple[int, ...] = ()  # depths of the loops that an update adds up
    raw: bool = False  # sources are taken as they lie in memory
    lead: tuple[Axis, ...] = field(default=())  # the axes of a private value
    _is_apart: bool | None = None

    @property
    def is_apart(self) -> bool:
        """Whether it reads no byte that it writes, but for a tile that is read and written in place."""
        if self._is_apart is None:
            region = make_region(self.tile, self.counts, 0)
            tiles = {operand.tile for operand in self.operands if operand.tile and not operand.is_private}
            others = (make_region(tile, self.counts, 0) for tile in tiles - {self.tile})
            self._is_apart = self.is_private or not any(region.meets(other) for other in others)
        return self._is_apart


def make_statements(
    instruction: Instruction, axes: tuple[Axis, ...], counts: Sequence[int], pitch_bytes: dict[str, int]
) -> list[Statement]:
    """Resolves the operands of `instruction`, which stands in loops that run `counts` times: a statement for each tile
    that it writes, the first of them last, for only that one may lie where a source does.
    """
    return [_statement(instruction, name, axes, counts, pitch_bytes) for name, _ in instruction.destinations[::-1]]


def _statement(
    instruction: Instruction,
    written: str,
    axes: tuple[Axis, ...],
    counts: Sequence[int],
    pitch_bytes: dict[str, int],
) -> Statement:

    def resolve(tile: AnyTile) -> Access:
        return make_access(tile, counts, pitch_bytes[tile.space] if isinstance(tile, Tile) else 0)

    operands: list[Operand] = []
    target: AnyTile | None = None
    is_update, first = False, ()
    for name, kind in instruction.kinds():
        value = getattr(instruction, name)
        if isinstance(kind, ScalarKind):
            is_tile = isinstance(value, Tile | DramTile)
            operands.append(Operand(tile=value, access=resolve(value), is_scalar=True) if is_tile else Operand(value))
        elif isinstance(kind, TileKind) and kind.role == "reads":
            operands.append(Operand(tile=value, access=resolve(value)))
        elif name == written and isinstance(kind, TileKind):
            target = value
            is_update = kind.role == "updates"
            first = getattr(instruction, kind.unless) if is_update else ()
    assert target is not None
    at = resolve(target)
    statement = Statement(instruction, written, axes, tuple(counts), operands, target, at, is_update, first)
    statement.raw = is_update or instruction.takes_bits
    statement.lead = axes
    return statement
