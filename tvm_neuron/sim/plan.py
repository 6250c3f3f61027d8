"""plan: decides once per program which loop nests are run at once, and which loop by loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm_neuron.program import Loop, Node
from tvm_neuron.sim.execute import Bound
from tvm_neuron.sim.memory import Memory
from tvm_neuron.sim.nest import Nest, make_nest
from tvm_neuron.sim.region import Region, make_region
from tvm_neuron.sim.statement import Statement, make_statement


@dataclass(slots=True)
class Leaf:
    """One instruction on its own."""

    statement: Statement
    bound: Bound | None = None  # kept for further runs where no loop is around it

    def run(self, memory: Memory, outer: Sequence[int]) -> None:
        """Runs it in the iteration `outer`."""
        bound = self.bound or Bound(self.statement, memory, outer, ())
        if not outer:
            self.bound = bound
        bound.run({})


@dataclass(slots=True)
class Repeat:
    """A loop that is run one iteration after the other; `reason` says why."""

    count: int
    actions: list["Action"]
    reason: str

    def run(self, memory: Memory, outer: Sequence[int]) -> None:
        """Runs all iterations."""
        for index in range(self.count):
            for action in self.actions:
                action.run(memory, (*outer, index))


Action = Leaf | Nest | Repeat


def plan(body: tuple[Node, ...], pitch_bytes: dict[str, int], whole_nests: bool) -> list[Action]:
    """The actions that run `body`; without `whole_nests` every instruction is run on its own."""
    actions = _plan(body, (), pitch_bytes, whole_nests)
    _settle_stored(list(_leaves(actions)))
    return actions


def _plan(body: tuple[Node, ...], counts: tuple[int, ...], pitch_bytes: dict[str, int], whole: bool) -> list[Action]:
    actions: list[Action] = []
    for node in body:
        if not isinstance(node, Loop):
            actions.append(Leaf(make_statement(node, (), counts, pitch_bytes)))
            continue
        nest = make_nest(node, counts, pitch_bytes) if whole else "one instruction at a time"
        if isinstance(nest, str):
            inner = _plan(node.body, (*counts, node.count), pitch_bytes, whole)
            actions.append(Repeat(node.count, inner, nest))
        else:
            actions.append(nest)
    return actions


def _leaves(actions: Sequence[Action]) -> Iterator[Leaf | Nest]:
    for action in actions:
        if isinstance(action, Repeat):
            yield from _leaves(action.actions)
        else:
            yield action


def _settle_stored(leaves: Sequence[Leaf | Nest]) -> None:
    """Has nests store those private values that an instruction may read from memory, whenever that runs."""
    exposed: dict[str | int, set[Region]] = {}
    for leaf in leaves:
        for statement in leaf.statements if isinstance(leaf, Nest) else [leaf.statement]:
            tiles = [operand.tile for operand in statement.operands if operand.tile and not operand.is_private]
            if statement.is_update and not statement.is_private:
                tiles.append(statement.tile)
            for tile in tiles:
                region = make_region(tile, statement.counts, 0)
                exposed.setdefault(region.place, set()).add(region)
    for leaf in leaves:
        if isinstance(leaf, Nest):
            privates = {s.tile: s for s in leaf.statements if s.is_private}
            for statement in privates.values():
                region = make_region(statement.tile, statement.counts, 0)
                if any(region.meets(other) for other in exposed.get(region.place, ())):
                    leaf.stored.append(statement)
