"""`relay.dataflow_pattern`: expressions found by what they look like, rewritten, and cut into functions."""

from typing import Any

from tvm_neuron.relay.dataflow_pattern.makers import (
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from tvm_neuron.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)
from tvm_neuron.relay.dataflow_pattern.rewriting import DFPatternCallback, partition, rewrite

__all__ = [
    "AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DFPatternCallback", "DataTypePattern",
    "DominatorPattern", "ExprPattern", "FunctionPattern", "IfPattern", "LetPattern", "ShapePattern",
    "TupleGetItemPattern", "TuplePattern", "TypePattern", "VarPattern", "WildcardPattern", "dominates", "has_attr",
    "has_dtype", "has_shape", "has_type", "is_constant", "is_expr", "is_if", "is_let", "is_op", "is_tuple",
    "is_tuple_get_item", "is_var", "match", "partition", "rewrite", "wildcard",
]  # fmt: skip


def match(pattern: DFPattern, expr: Any) -> bool:
    """Whether an expression looks like a pattern."""
    return pattern.match(expr)
