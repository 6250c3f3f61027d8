"""Constants without elements in the CPU parts, made when the library runs.

TVM writes such a constant into a library but can't read it back ("Invalid DLTensor file format"); as a fresh tensor it
holds the same nothing.
"""

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator


@tvm.transform.module_pass(opt_level=0, name="AllocateEmptyConstants")
def allocate_empty_constants(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """`mod` with every Relax constant of zero elements replaced by an allocation of its shape and dtype."""
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            result.update_func(var, _Allocate(mod).visit_expr(func))
    return result


@mutator
class _Allocate(PyExprMutator):
    def visit_generic_const_(self, op: tvm.ir.GenericConst) -> relax.Expr:
        shape = getattr(op.value, "shape", (1,))
        if 0 not in shape:
            return op
        return self.builder_.emit(relax.op.builtin.alloc_tensor(relax.ShapeExpr(shape), str(op.value.dtype), 0))
