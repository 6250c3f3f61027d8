"""What makes patterns: `is_op`, `wildcard` and the like."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_neuron.relay.dataflow_pattern.patterns import (
    AttrPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    listed,
)
from tvm_neuron.relay.ir.expr import Op


def is_op(op_name: str) -> ExprPattern:
    """An operator: `is_op("nn.conv2d")(wildcard(), wildcard())` is a call of it."""
    return ExprPattern(Op(op_name))


def is_var(name: str = "") -> VarPattern:
    """A variable, of a name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: Any) -> ExprPattern:
    """An expression that is equal to this one."""
    return ExprPattern(expr)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """A tuple of these fields, or of any for None."""
    return TuplePattern(None if fields is None else listed(fields))


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple, any one for None."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A choice between two expressions."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A binding."""
    return LetPattern(var, value, body)


def has_type(ttype: Any, pattern: DFPattern | None = None) -> TypePattern:
    """Anything (or `pattern`) of a type."""
    return TypePattern(pattern or wildcard(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Anything (or `pattern`) of a dtype."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """Anything (or `pattern`) of a shape."""
    return ShapePattern(pattern or wildcard(), shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Anything (or `pattern`) with these attributes."""
    return AttrPattern(pattern or wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """`child`, all of whose ways up, along `path`, come from `parent`."""
    return DominatorPattern(parent, path, child)
