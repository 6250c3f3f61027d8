"""Names of CPU kernels that no other build in the same library has: the linker knows them by name alone."""

import tvm
from tvm import relax
from tvm.relax.expr import _update_type
from tvm.relax.expr_functor import PyExprMutator, mutator


def with_prefix(mod: tvm.IRModule, prefix: str) -> tvm.IRModule:
    """A lowered module whose kernels' names begin with `prefix`."""
    names = {}
    for var, func in mod.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            names[var] = tvm.ir.GlobalVar(f"{prefix}{var.name_hint}")
            _update_type(names[var], var.ty)
    functions = {}
    for var, func in mod.functions_items():
        if var in names:
            functions[names[var]] = func.with_attr("global_symbol", names[var].name_hint)
        else:
            functions[var] = _Rename(mod, names).visit_expr(func) if isinstance(func, relax.Function) else func
    return tvm.IRModule(functions, attrs=mod.attrs)


@mutator
class _Rename(PyExprMutator):
    def __init__(self, mod: tvm.IRModule, names: dict[tvm.ir.GlobalVar, tvm.ir.GlobalVar]) -> None:
        super().__init__(mod)
        self._names = names

    def visit_global_var_(self, op: tvm.ir.GlobalVar) -> relax.Expr:
        return self._names.get(op, op)
