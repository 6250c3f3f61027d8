"""The patterns for `FuseOpsByPattern`: one per operator and number of operands that the module holds.

No list of operators is kept by hand: what the plan places on the NeuronCore is what the patterns accept.
"""

from collections.abc import Mapping

import tvm
from tvm import relax
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.transform import FusionPattern, PatternCheckContext

from tvm_neuron.frontend.by_hand import kernel_name
from tvm_neuron.frontend.origin import bindings_of, op_name, origin_of
from tvm_neuron.partition.plan import Plan

ORIGIN_ATTR = "neuron.origin"
"""Attribute of a composite function: the encoded origin of its call."""

NUMBER_ATTR = "neuron.number"
"""Attribute of a composite function: the place of its call among the plan's decisions."""

CODEGEN = "neuron"
"""How the names of code generators begin that `MergeCompositeFunctions` gives to subgraphs."""

_ROOT = "root"


def make_patterns(func: relax.Function, plan: Plan) -> list[FusionPattern]:
    """A pattern for each kind of call in `func` of which `plan` places at least one on the NeuronCore."""
    numbers = {var: number for number, var in enumerate(plan.decisions)}
    kinds = {}
    for binding in bindings_of(func):
        if plan.is_on_neuroncore(binding.var):
            call = binding.value
            alone = binding.var if kernel_name(call) else None
            kinds[(call.op.name, len(call.args), alone)] = call
    return [_pattern(call, alone, plan, numbers) for (_, _, alone), call in kinds.items()]


def _pattern(call: relax.Call, alone: relax.Var | None, plan: Plan, numbers: Mapping[relax.Var, int]) -> FusionPattern:
    """`op(*, *, ...)`, accepted where the plan says so; the composite carries the origin, so equal ones stay apart.

    A kernel written by hand is `alone`: the code generator that its pattern names is no other's, so nothing joins it.
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

    pattern = is_op(call.op.name)(*(wildcard() for _ in call.args))
    generator = CODEGEN if alone is None else f"{CODEGEN}_{numbers[alone]}"
    return FusionPattern(f"{generator}.{op_name(call)}", pattern, {_ROOT: pattern}, is_accepted, attributes)
