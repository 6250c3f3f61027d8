"""`relay.expr_functor`: walks over expressions."""

from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import ExprFunctor, ExprMutator, ExprVisitor

__all__ = [
    "Call", "Constant", "ExprFunctor", "ExprMutator", "ExprVisitor", "Function", "GlobalVar", "If", "Let", "Op",
    "Tuple", "TupleGetItem", "Var",
]  # fmt: skip
