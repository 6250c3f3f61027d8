"""Sizes that only a run tells, before what has them: TVM's fusion orders bindings by the tensors they read alone."""

from collections.abc import Iterable, Iterator

import tvm
from tvm import relax, tirx

from tvm_neuron.frontend.origin import with_blocks


@tvm.transform.module_pass(opt_level=0, name="DefineSizesFirst")
def define_sizes_first(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """`mod` with every binding after those that define the sizes in its type; the rest stays in its order."""
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            blocks = [type(block)(_ordered(block.bindings)) for block in func.body.blocks]
            result.update_func(var, with_blocks(func, blocks))
    return result


def _ordered(bindings: Iterable[relax.Binding]) -> list[relax.Binding]:
    bindings = list(bindings)
    casts = [binding for binding in bindings if isinstance(binding, relax.MatchCast)]
    if not casts:
        return bindings
    defines = {binding.var: binding for binding in bindings}
    defines |= {size: cast for cast in reversed(casts) for size in _defined(cast)}  # the first of several
    done: dict[relax.Binding, None] = {}

    def put(binding: relax.Binding) -> None:
        if binding in done:
            return
        for used in (*relax.analysis.free_vars(binding.value), *_sizes(binding)):
            before = defines.get(used)
            if before is not None and before is not binding:
                put(before)
        done[binding] = None

    for binding in bindings:
        put(binding)
    return list(done)


def _defined(cast: relax.MatchCast) -> Iterator[tirx.Var]:
    """Sizes that what is cast has already are only checked."""
    known = relax.analysis.tir_vars_in_type(cast.value.ty)
    return (size for size in relax.analysis.definable_tir_vars_in_type(cast.ty) if size not in known)


def _sizes(binding: relax.Binding) -> Iterator[tirx.Var]:
    """The sizes that its result has or that it computes with; what a cast defines is none of them."""
    if isinstance(binding, relax.MatchCast):
        return
    yield from relax.analysis.tir_vars_in_type(binding.var.ty)
    for argument in binding.value.args if isinstance(binding.value, relax.Call) else [binding.value]:
        if isinstance(argument, relax.ShapeExpr):
            for value in argument.values:
                yield from tirx.analysis.undefined_vars(tirx.Evaluate(value), [])
