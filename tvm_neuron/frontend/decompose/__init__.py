"""decompose: operators without a kernel of plain loops, or with needless work in one, as calls of simpler ones."""

from collections.abc import Mapping

from tvm import relax

from tvm_neuron.frontend.decompose import (
    cumulative,
    extremes,
    inference,
    layouts,
    norms,
    ranking,
    scattering,
    unlowered,
)
from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion
from tvm_neuron.frontend.origin import bindings_of, with_blocks

_EXPANSIONS: dict[str, Expansion] = {
    **inference.EXPANSIONS,
    **cumulative.EXPANSIONS,
    **layouts.EXPANSIONS,
    **extremes.EXPANSIONS,
    **norms.EXPANSIONS,
    **ranking.EXPANSIONS,
    **scattering.EXPANSIONS,
    **unlowered.EXPANSIONS,
}


def decompose(func: relax.Function) -> relax.Function:
    """Replace what has an expansion; the calls that replace it carry its origin."""
    blocks = []
    made = {binding.var: binding.value for binding in bindings_of(func)}
    for block in func.body.blocks:
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            expand = _EXPANSIONS.get(getattr(getattr(getattr(binding, "value", None), "op", None), "name", ""))
            bindings += [binding] if expand is None else _expand(binding, expand, made)
        blocks.append(type(block)(bindings))
    return with_blocks(func, blocks)


def _expand(
    binding: relax.VarBinding, expansion: Expansion, made: Mapping[relax.Var, relax.Expr]
) -> list[relax.Binding]:
    emitter = Emitter(binding, made)
    result = expansion(binding.value, emitter)
    return [binding] if result is None else [*emitter.bindings, relax.VarBinding(binding.var, result)]
