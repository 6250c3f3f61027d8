"""The patterns for `FuseOpsByPattern`: one for all operators that the module holds, one for each kernel by hand.

No list of operators is kept by hand: what the plan places on the NeuronCore is what the patterns accept. TVM makes the
module anew for each pattern, so there are few.
"""

import operator
from collections.abc import Mapping, Sequence
from functools import reduce

import tvm
from tvm import relax
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.transform import FusionPattern, PatternCheckContext

from tvm_neuron.frontend.by_hand import kernel_name
from tvm_neuron.frontend.origin import bindings_of, origin_of
from tvm_neuron.partition.plan import Plan

ORIGIN_ATTR = "neuron.origin"
"""Attribute of a composite function: the encoded origin of its call."""

NUMBER_ATTR = "neuron.number"
"""Attribute of a composite function: the place of its call among the plan's decisions."""

CODEGEN = "neuron"
"""How the names of code generators begin that `MergeCompositeFunctions` gives to subgraphs."""

_ROOT = "root"


def make_patterns(func: relax.Function, plan: Plan) -> list[FusionPattern]:
    """For the calls in `func` that `plan` places on the NeuronCore."""
    numbers = {var: number for number, var in enumerate(plan.decisions)}
    calls = {binding.var: binding.value for binding in bindings_of(func) if plan.is_on_neuroncore(binding.var)}
    by_hand = {var: call for var, call in calls.items() if kernel_name(call)}
    kinds = {(call.op.name, len(call.args)): call for var, call in calls.items() if var not in by_hand}
    shared = [_pattern(list(kinds.values()), None, plan, numbers)] if kinds else []
    return [*shared, *(_pattern([call], var, plan, numbers) for var, call in by_hand.items())]


def _pattern(
    calls: Sequence[relax.Call], alone: relax.Var | None, plan: Plan, numbers: Mapping[relax.Var, int]
) -> FusionPattern:
    """`op(*, *, ...)` as one of `calls`, accepted where the plan says so.

    The composite carries the origin, so equal ones stay apart. A kernel written by hand is `alone`: the code generator
    that its pattern names is no other's, so nothing joins it.
    """

    found: dict[tvm.ir.Expr, int] = {}

    def is_accepted(context: PatternCheckContext) -> bool:
        root = context.annotated_expr[_ROOT]
        var = context.value_to_bound_var.get(root)
        if var is None or not plan.is_on_neuroncore(var) or (alone is not None and not var.same_as(alone)):
            return False
        found[root] = numbers[var]
        return True

    def attributes(annotated: dict[str, tvm.ir.Expr]) -> dict[str, str | int]:
        root = annotated[_ROOT]
        origin = origin_of(root)
        return {ORIGIN_ATTR: origin.encode() if origin else "", NUMBER_ATTR: found[root]}

    each = [is_op(call.op.name)(*(wildcard() for _ in call.args)) for call in calls]
    pattern = reduce(operator.or_, each)
    generator = CODEGEN if alone is None else f"{CODEGEN}_{numbers[alone]}"
    return FusionPattern(f"{generator}.operator", pattern, {_ROOT: pattern}, is_accepted, attributes)
