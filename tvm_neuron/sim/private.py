"""Private tiles: scratch memory whose value lives inside one iteration, so that it can be kept apart per iteration.

A PSUM bank used in turns is written and read again within one iteration of a nest. When the whole nest is run at once,
such a value travels as an array with the loops as leading axes, and where it would lie in memory doesn't matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_neuron.sim.region import make_region, never_meet_at_once
from tvm_neuron.sim.statement import AnyTile, Axis, Statement


@dataclass(frozen=True, slots=True)
class Use:
    """Statement number `index` of a nest reads or writes a tile."""

    index: int
    statement: Statement
    is_write: bool


@dataclass(frozen=True, slots=True)
class Private:
    """A private tile: `home` are the loops whose every iteration has its own value, `uses` in the order of the text."""

    tile: AnyTile
    home: tuple[Axis, ...]
    uses: tuple[Use, ...]


def uses_by_tile(statements: Sequence[Statement]) -> dict[AnyTile, list[Use]]:
    """Every tile with its uses; in one statement reads come before the write."""
    found: dict[AnyTile, list[Use]] = {}
    for index, statement in enumerate(statements):
        for operand in statement.operands:
            if operand.tile is not None:
                found.setdefault(operand.tile, []).append(Use(index, statement, is_write=False))
        found.setdefault(statement.tile, []).append(Use(index, statement, is_write=True))
    return found


def as_private(tile: AnyTile, uses: Sequence[Use], depth: int) -> Private | None:
    """The tile as a private one of the nest whose outermost loop is at `depth`, or None where it isn't."""
    if len(uses) < 2 or not uses[0].is_write:
        return None
    opening = uses[0].statement
    home = _home(opening, depth)
    if home is None:
        return None
    for use in uses:
        axes = use.statement.axes
        if axes[: len(home)] != home:
            return None
        extra = axes[len(home) :]
        if any(use.statement.target.moves(axis.depth) for axis in extra) and use.is_write:
            return None
        if any(_follows(tile, axis.depth) for axis in extra):
            return None  # the same words, but another loop
        if use.is_write and not _writes_whole_or_adds(use.statement, extra):
            return None
    return None if _share_inner_loop(uses, len(home)) else Private(tile, home, tuple(uses))


def _home(opening: Statement, depth: int) -> tuple[Axis, ...] | None:
    """The loops that are left of the opening statement's once it has written the whole tile."""
    first = opening.first
    if first is None or any(loop < depth for loop in first):
        return None
    return opening.axes[: len(opening.axes) - sum(axis.depth in first for axis in opening.axes)]


def _writes_whole_or_adds(statement: Statement, extra: Sequence[Axis]) -> bool:
    """Whether, over its loops inside the home, it overwrites the tile or adds to it, in every iteration of the home."""
    return statement.first is None or set(statement.first) == {axis.depth for axis in extra}


def _follows(tile: AnyTile, depth: int) -> bool:
    return any(getattr(tile, part).step(depth) != 0 for part in ("partition", "offset") if hasattr(tile, part))


def _share_inner_loop(uses: Sequence[Use], home: int) -> bool:
    """Whether a loop inside the home holds a write and another use: they would alternate, not follow each other."""
    inner: dict[tuple[int, ...], list[Use]] = {}
    for use in uses:
        if len(use.statement.axes) > home:
            inner.setdefault(use.statement.axes[home].key, []).append(use)
    return any(len(group) > 1 and any(use.is_write for use in group) for group in inner.values())


def collide(left: Private, right: Private, statements: Sequence[Statement], depth: int) -> bool:
    """Whether one private tile could overwrite the other while that is in use."""
    counts = left.uses[0].statement.counts
    regions = [make_region(private.tile, private.uses[0].statement.counts, depth) for private in (left, right)]
    if not regions[0].meets(regions[1]):
        return False
    if left.home == right.home and never_meet_at_once(left.tile, right.tile, counts):
        return False
    (start, end), (other_start, other_end) = _lifetime(left, statements), _lifetime(right, statements)
    return start <= other_end and other_start <= end


def _lifetime(private: Private, statements: Sequence[Statement]) -> tuple[int, int]:
    """From its first to its last use, whole inner loops included."""
    size = len(private.home)
    low, high = private.uses[0].index, private.uses[-1].index
    for use in private.uses:
        if len(use.statement.axes) > size:
            key = use.statement.axes[size].key
            inside = [i for i, s in enumerate(statements) if len(s.axes) > size and s.axes[size].key == key]
            low, high = min(low, inside[0]), max(high, inside[-1])
    return low, high
