"""legal: whether a loop nest gives the same when each of its statements is run for all iterations before the next.

Judged by address ranges over all iterations, so a "no" costs time and never a wrong result.
"""

from collections.abc import Sequence

from tvm_neuron.sim.private import Private, as_private, collide, uses_by_tile
from tvm_neuron.sim.region import Region, make_region
from tvm_neuron.sim.statement import AnyTile, Statement

# A nest with more statements (a loop around a whole network) is taken apart without looking at all pairs.
_MOST_STATEMENTS = 64


def settle(statements: Sequence[Statement], depth: int) -> str:
    """Marks private tiles and summed loops in the statements of the nest whose outermost loop is at `depth`.

    Returns what stands in the way of running it at once, "" if nothing.
    """
    if len(statements) > _MOST_STATEMENTS:
        return f"{len(statements)} statements"
    privates: list[Private] = []
    for tile, uses in uses_by_tile(statements).items():
        if private := as_private(tile, uses, depth):
            privates.append(private)
            _mark(private)
    for index, left in enumerate(privates):
        for right in privates[index + 1 :]:
            if collide(left, right, statements, depth):
                return f"{left.tile} and {right.tile} share memory"
    for statement in statements:
        if reason := _reads_linear(statement) or _writes_once(statement, depth):
            return reason
    return _conflict(statements, privates, depth)


def _mark(private: Private) -> None:
    for use in private.uses:
        statement = use.statement
        if use.is_write:
            statement.is_private = True
            statement.lead = private.home
            statement.summed = tuple(axis.depth for axis in statement.axes[len(private.home) :])
        for operand in statement.operands:
            operand.is_private |= operand.tile == private.tile


def _reads_linear(statement: Statement) -> str:
    for operand in statement.operands:
        access = None if operand.is_private else operand.access
        if access and any(axis.count > 1 and access.is_ring(axis.depth) for axis in statement.axes):
            return f"{operand.tile} is read around a ring"
    return ""


def _writes_once(statement: Statement, depth: int) -> str:
    """Settles which loops an update adds up; all others must lead to different bytes."""
    if statement.is_private:
        return ""
    target, first = statement.target, statement.first
    still = {axis.depth for axis in statement.axes if axis.count > 1 and not target.moves(axis.depth)}
    if first is None:
        summed = {axis.depth for axis in statement.axes if not target.moves(axis.depth)}
    else:
        summed = {loop for loop in first if loop >= depth}
    if not still <= summed or any(target.moves(loop) for loop in summed):
        return f"{statement.tile} is written again and again"
    if not target.is_injective({axis.depth: axis.count for axis in statement.axes if axis.depth not in summed}):
        return f"{statement.tile} overlaps itself"
    statement.summed = tuple(sorted(summed))
    return ""


def _conflict(statements: Sequence[Statement], privates: Sequence[Private], depth: int) -> str:
    """Two accesses, one a write, that may meet otherwise than in the same iteration in the order of the text."""
    reads: list[tuple[Region, Statement, AnyTile]] = []
    writes: list[tuple[Region, Statement, AnyTile]] = []
    for statement in statements:
        for operand in statement.operands:
            if operand.tile is not None and not operand.is_private:
                reads.append((make_region(operand.tile, statement.counts, depth), statement, operand.tile))
        if not statement.is_private:
            writes.append((make_region(statement.tile, statement.counts, depth), statement, statement.tile))
    for number, (region, statement, tile) in enumerate(writes):
        for other_region, other, other_tile in (*reads, *writes[number + 1 :]):
            if region.meets(other_region) and not _in_step(statement, tile, other, other_tile):
                return f"{tile} meets {other_tile}"
    for private in privates:
        region = make_region(private.tile, private.uses[0].statement.counts, depth)
        for other_region, _, other_tile in (*reads, *writes):
            if region.meets(other_region):
                return f"{private.tile} meets {other_tile}"
    return ""


def _in_step(writer: Statement, tile: AnyTile, other: Statement, other_tile: AnyTile) -> bool:
    """Whether the two touch the same bytes in the same iteration only."""
    if tile != other_tile:
        return False
    common = 0
    for axis, other_axis in zip(writer.axes, other.axes, strict=False):
        if axis.key != other_axis.key:
            break
        common += 1
    moving = [i for i, axis in enumerate(writer.axes) if axis.count > 1 and writer.target.moves(axis.depth)]
    if any(i >= common for i in moving):
        return False
    # A loop that both are in and that moves neither would let one see the other's later or earlier iterations.
    return all(i in moving or axis.count == 1 for i, axis in enumerate(writer.axes[:common]))
