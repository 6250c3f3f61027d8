"""`relay.expr`: the nodes of expressions."""

from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    RelayExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    as_expr,
    const,
    var,
)
from tvm_neuron.relay.ir.functor import bind

__all__ = [
    "Call", "Constant", "Expr", "Function", "GlobalVar", "If", "Let", "RelayExpr", "Tuple", "TupleGetItem",
    "TupleWrapper", "Var", "as_expr", "bind", "const", "var",
]  # fmt: skip

Expr = RelayExpr
