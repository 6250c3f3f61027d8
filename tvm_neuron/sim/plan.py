"""plan: decides once per program which loop nests are run at once, and which loop by loop."""

from tvm_neuron.program import Loop, Node
from tvm_neuron.sim.action import Action, Leaf, Repeat
from tvm_neuron.sim.nest import make_nest
from tvm_neuron.sim.statement import make_statements
from tvm_neuron.sim.stored import settle_stored


def plan(body: tuple[Node, ...], pitch_bytes: dict[str, int], whole_nests: bool) -> list[Action]:
    """The actions that run `body`; without `whole_nests` every instruction is run on its own."""
    actions = _plan(body, (), pitch_bytes, whole_nests)
    settle_stored(actions)
    return actions


def _plan(body: tuple[Node, ...], counts: tuple[int, ...], pitch_bytes: dict[str, int], whole: bool) -> list[Action]:
    actions: list[Action] = []
    for node in body:
        if not isinstance(node, Loop):
            actions += [Leaf(statement) for statement in make_statements(node, (), counts, pitch_bytes)]
            continue
        nest = make_nest(node, counts, pitch_bytes) if whole else "one instruction at a time"
        if isinstance(nest, str):
            inner = _plan(node.body, (*counts, node.count), pitch_bytes, whole)
            actions.append(Repeat(node.count, inner, nest))
        else:
            actions.append(nest)
    return actions
