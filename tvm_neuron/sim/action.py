"""What a plan consists of: instructions on their own, loop nests that are run at once, and loops run turn by turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tvm_neuron.sim.execute import Bound
from tvm_neuron.sim.memory import Memory
from tvm_neuron.sim.nest import MOST_KEPT, Nest
from tvm_neuron.sim.statement import Statement


@dataclass(slots=True)
class Leaf:
    """One instruction on its own."""

    statement: Statement
    turns: dict[tuple[int, ...], Bound] = field(default_factory=dict, repr=False)  # by the loops around it

    @property
    def statements(self) -> list[Statement]:
        """The instruction."""
        return [self.statement]

    def run(self, memory: Memory, outer: Sequence[int]) -> None:
        """Runs it in the iteration `outer`."""
        bound = self.turns.get(tuple(outer))
        if bound is None:
            bound = Bound(self.statement, memory, outer, ())
            if len(self.turns) < MOST_KEPT:
                self.turns[tuple(outer)] = bound
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


def leaves(actions: Sequence[Action]) -> Iterator[Leaf | Nest]:
    """Everything that runs instructions, in the order of the text."""
    for action in actions:
        if isinstance(action, Repeat):
            yield from leaves(action.actions)
        else:
            yield action
