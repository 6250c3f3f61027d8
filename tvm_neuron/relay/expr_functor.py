"""`relay.expr_functor`: walks over expressions."""

from tvm_neuron.relay.ir.functor import ExprFunctor, ExprMutator, ExprVisitor

__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor"]
