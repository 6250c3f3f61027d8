"""fold_constants: what kernels make of constants alone, computed at compile time.

TVM's own pass compiles a module for each such kernel, which takes LLVM some 40 ms; random numbers of JAX have eighty of
them. Here all are one module. What is left, such as shapes of constants, TVM's pass does.
"""

from collections.abc import Callable, Iterator
from math import prod

import tvm
from tvm import relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from tvm_neuron.frontend.decompose.shapes import static_shape

_MOST_MADE = 1024
"""Elements of what is made of nothing, zeros for example: larger ones are made at run time, as by TVM's pass."""
_Constants = dict[relax.Var, tvm.ir.GenericConst]


@tvm.transform.module_pass(opt_level=0, name="FoldConstants")
def fold_constants(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module with a constant instead of each call of a kernel that reads nothing else."""
    functions = {var: func for var, func in mod.functions_items() if isinstance(func, relax.Function)}
    calls = {var: list(_calls_of_constants(func)) for var, func in functions.items()}
    kernels = {call.args[0] for each in calls.values() for _, call in each}
    if not kernels:
        return mod
    made = tvm.compile(tvm.IRModule({var: _named(mod[var], var.name_hint) for var in kernels}), target="llvm")
    result = mod.clone()
    for var, found in calls.items():
        constants: _Constants = {}
        for result_var, call in found:
            constants[result_var] = _computed(made[call.args[0].name_hint], call, constants)
        if constants:
            result.update_func(var, _Constant(constants).visit_expr(functions[var]))
    return result


def _named(kernel: tirx.PrimFunc, name: str) -> tirx.PrimFunc:
    return kernel.with_attr("global_symbol", name)


def _calls_of_constants(func: relax.Function) -> Iterator[tuple[relax.Var, relax.Call]]:
    """The calls of kernels with constants alone, in order, and with what such calls give."""
    known: set[relax.Var] = set()
    blocks = func.body.blocks if isinstance(func.body, relax.SeqExpr) else ()
    for binding in (binding for block in blocks for binding in block.bindings):
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if not isinstance(call, relax.Call) or call.op != tvm.ir.Op.get("relax.call_tir") or len(call.args) > 2:
            continue
        arguments, shape = call.args[1], static_shape(binding.var)
        if not isinstance(arguments, relax.Tuple) or shape is None or 0 in shape:
            continue
        if not arguments.fields and prod(shape) > _MOST_MADE:
            continue
        if all(isinstance(each, tvm.ir.GenericConst) or each in known for each in arguments.fields):
            known.add(binding.var)
            yield binding.var, call


def _computed(kernel: Callable[..., None], call: relax.Call, constants: _Constants) -> tvm.ir.GenericConst:
    result = tvm.runtime.empty(static_shape(call), str(call.ty.dtype))
    kernel(*(constants.get(each, each).value for each in call.args[1].fields), result)
    return relax.const(result)


@mutator
class _Constant(PyExprMutator):
    def __init__(self, constants: _Constants) -> None:
        super().__init__()
        self._constants = constants

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        found = self._constants.get(binding.var)
        super().visit_var_binding_(relax.VarBinding(binding.var, found) if found is not None else binding)
