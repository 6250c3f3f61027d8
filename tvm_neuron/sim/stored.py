"""settle_stored: which private values of nests must lie in memory as well, because something may read them there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tvm_neuron.isa import DramTile
from tvm_neuron.sim.access import Access
from tvm_neuron.sim.action import Action, Leaf, Repeat, leaves
from tvm_neuron.sim.nest import Nest
from tvm_neuron.sim.region import Region, make_region
from tvm_neuron.sim.statement import AnyTile, Statement


@dataclass(slots=True)
class _Private:
    """A nest, the last statement in it that writes a private tile, and what that can touch."""

    nest: Nest
    last: Statement
    region: Region
    is_stored: bool


def settle_stored(actions: Sequence[Action]) -> None:
    """Has nests store those private values that an instruction may read from memory, whenever that runs."""
    privates: dict[str | int, list[_Private]] = {}
    for leaf in leaves(actions):
        if isinstance(leaf, Nest):
            for tile, statement in {s.tile: s for s in leaf.statements if s.is_private}.items():
                region = make_region(tile, statement.counts, 0)
                may_be_output = isinstance(tile, DramTile)
                privates.setdefault(region.place, []).append(_Private(leaf, statement, region, may_be_output))
    if privates:
        _settle(actions, privates)
    for private in chain.from_iterable(privates.values()):  # in the order of the text: some take turns in one place
        if private.is_stored:
            private.nest.stored.append(private.last)


def _settle(actions: Sequence[Action], privates: Mapping[str | int, list[_Private]]) -> None:
    """Marks them for what these actions read, which run one after the other, be it again and again."""
    for number, action in enumerate(actions):
        if isinstance(action, Repeat):
            _settle(action.actions, privates)
            continue
        for statement, tile, access in _reads(action):
            region = make_region(tile, statement.counts, 0)
            met = [private for private in privates.get(region.place, ()) if region.meets(private.region)]
            if met and not _is_written(statement, access, actions[:number], [private.nest for private in met]):
                for private in met:
                    private.is_stored = True


def _reads(leaf: Leaf | Nest) -> Iterator[tuple[Statement, AnyTile, Access]]:
    """The tiles that are taken as they lie in memory."""
    for statement in leaf.statements:
        for operand in statement.operands:
            if operand.tile is not None and operand.access is not None and not operand.is_private:
                yield statement, operand.tile, operand.access
        own = {axis.depth for axis in statement.axes}
        is_fresh = statement.first is not None and own.issuperset(statement.first)
        if statement.is_update and not statement.is_private and not is_fresh:
            yield statement, statement.tile, statement.target


def _is_written(reader: Statement, access: Access, earlier: Sequence[Action], nests: Sequence[Nest]) -> bool:
    """Whether one of the `earlier` actions writes all of `access` to memory, each time, and none of `nests` follows.

    Judged by what the two say: the same bytes, which no loop that is run at once moves.
    """
    if any(access.moves(axis.depth) for axis in reader.axes):
        return False
    for action in reversed(earlier):
        if any(leaf is nest for leaf in leaves([action]) for nest in nests):
            return False
        if isinstance(action, Repeat):
            continue  # its loop may move what it writes
        for writer in action.statements:
            is_still = not any(writer.target.moves(axis.depth) for axis in writer.axes)
            if not writer.is_private and is_still and _bytes(writer.target) == _bytes(access):
                return True
    return False


def _bytes(access: Access) -> tuple[object, ...]:
    """What tells which bytes are met."""
    dims = tuple(dim for dim in zip(access.shape, access.strides, strict=True) if dim[0] > 1)
    return access.place, access.dtype, access.base, access.steps, access.rings, dims
