"""Where every operator of the model runs, and why: the rows of the placement report."""

from collections import defaultdict
from collections.abc import Iterable

from tvm import relax

from tvm_neuron.errors import PlacementError
from tvm_neuron.frontend.origin import OPERATORS_ATTR, Origin
from tvm_neuron.neff import Placement
from tvm_neuron.partition.plan import Decision, Plan, Where

_FOLDED = "its operands are known at compile time"
_NOTHING_LEFT = "nothing is left of it at inference"


def placements(main: relax.Function, plan: Plan) -> tuple[Placement, ...]:
    """A row for each operator of the model, in the model's order."""
    decided: dict[Origin, list[Decision]] = defaultdict(list)
    for decision in (*plan.decisions.values(), *plan.inside):
        decided[decision.origin].append(decision)
    listed = [Origin.decode(str(text)) for text in main.attrs[OPERATORS_ATTR]]
    return tuple(_place(origin, decided[origin]) for origin in listed if origin is not None)


def check_must_compile(rows: Iterable[Placement]) -> None:
    """Raises PlacementError naming every operator that would run on the CPU."""
    refused = [row for row in rows if row.where == Where.CPU]
    if refused:
        lines = "\n".join(f"  {row.name} ({row.op}): {row.reason}" for row in refused)
        count = "1 operator" if len(refused) == 1 else f"{len(refused)} operators"
        raise PlacementError(f"{count} can't run on the NeuronCore:\n{lines}")


def _place(origin: Origin, decisions: list[Decision]) -> Placement:
    """The CPU if any of its calls runs there, else the NeuronCore if any does."""
    reasons = dict.fromkeys(decision.reason for decision in decisions if decision.where is Where.CPU)
    if reasons:
        return Placement(origin.name, origin.op, Where.CPU.value, "; ".join(reasons))
    if any(decision.where is Where.NEURONCORE for decision in decisions):
        return Placement(origin.name, origin.op, Where.NEURONCORE.value, "")
    return Placement(origin.name, origin.op, Where.COMPILE_TIME.value, _FOLDED if decisions else _NOTHING_LEFT)
