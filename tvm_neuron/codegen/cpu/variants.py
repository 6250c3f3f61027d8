"""with_variants: kernels that compute much, compiled for newer processors as well, and chosen where the library runs.

A library for every x86-64 may use none that came after SSE2, with which exp or a sum takes twice as long as with AVX2.
"""

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from tvm_neuron.codegen.cpu.schedule import COMPUTES
from tvm_neuron.runtime.host import LLVM

LEVEL = "x86-64-v3"
"""AVX2 and FMA, of 2013. AVX-512 gains a quarter more."""
HAS_LEVEL = "tvm_neuron.runtime.has_level"
_FLAG = relax.TensorType((), "bool")


def with_variants(mod: tvm.IRModule) -> tvm.IRModule:
    """A lowered module that calls kernels compiled for `LEVEL` on processors that have it; both are in the library.

    As it is under a target of certain processors, or of no x86-64 ones.
    """
    target = tvm.target.Target.current(allow_none=True)
    kernels = {var: func for var, func in mod.functions_items() if func.attrs and COMPUTES in func.attrs}
    if not kernels or target is None or "mcpu" in target.attrs:
        return mod
    triple = str(target.attrs.get("mtriple", tvm.target.Target("llvm").attrs["mtriple"]))
    if not triple.startswith("x86_64"):
        return mod
    named = {var: f"{var.name_hint}_{LEVEL.replace('-', '_')}" for var in kernels}
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function):
            result.update_func(var, _Choose(mod, named).visit_expr(func))
    variants = {named[var]: func.with_attr("global_symbol", named[var]) for var, func in kernels.items()}
    newer = tvm.target.Target(LLVM | {"mtriple": triple, "mcpu": LEVEL})
    compiled = tvm.tirx.build(tvm.IRModule(variants), target=newer)
    return result.with_attr("external_mods", [*(mod.get_attr("external_mods") or ()), compiled])


@mutator
class _Choose(PyExprMutator):
    def __init__(self, mod: tvm.IRModule, named: dict[tvm.ir.GlobalVar, str]) -> None:
        super().__init__(mod)
        self._named = named

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        if call.op not in self._named:
            return call
        flag = self.builder_.emit(_packed(HAS_LEVEL, [tvm.ir.StringImm(LEVEL)], _FLAG))
        variant = _packed(self._named[call.op], call.args, call.ty)
        return relax.If(flag, relax.SeqExpr([], variant), relax.SeqExpr([], call))


def _packed(name: str, args: Any, ty: relax.Type) -> relax.Call:
    return relax.Call(relax.ExternFunc(name), args, ty_args=[ty])
