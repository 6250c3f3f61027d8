"""MatchCast bindings, which importers emit where only the data tells a size, such as after NonZero."""

from tvm import relax

from tvm_neuron.frontend.origin import with_blocks


def unnest_match_casts(func: relax.Function) -> relax.Function:
    """Bind the call inside a MatchCast to a variable of its own, so that every call is the value of a VarBinding."""
    blocks = []
    for block in func.body.blocks:
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            if isinstance(binding, relax.MatchCast) and isinstance(binding.value, relax.Call):
                make = relax.DataflowVar if isinstance(block, relax.DataflowBlock) else relax.Var
                var = make(f"{binding.var.name}_unmatched", binding.value.ty)
                bindings.append(relax.VarBinding(var, binding.value))
                binding = relax.MatchCast(binding.var, var, binding.ty)
            bindings.append(binding)
        blocks.append(type(block)(bindings))
    return with_blocks(func, blocks)
