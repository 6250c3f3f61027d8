"""The language of patterns: what an expression is to look like."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi

from tvm_neuron.errors import NeuronError
from tvm_neuron.relay.analysis import free_vars
from tvm_neuron.relay.dataflow_pattern.matching import Matcher, attributes_of
from tvm_neuron.relay.dataflow_pattern.rewriting import partition
from tvm_neuron.relay.infer import typed
from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, RelayExpr, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.ty import TensorType, is_known
from tvm_neuron.relay.op.kinds import pattern_of


class DFPattern:
    """A pattern; each object stands for one place in it, so the same one twice means the same expression twice."""

    is_part = True

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        raise NotImplementedError(type(self).__name__)

    def match(self, expr: Any) -> bool:
        """Whether an expression looks like this."""
        return Matcher(expr).matches(self, expr)

    def partition(
        self, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        """`expr` with a function for each part of it that looks like this, and for which `check` holds."""
        return partition(self, expr, attrs, check)

    def __call__(self, *args: Any) -> "CallPattern":
        """A call of what this matches; without arguments, or with None, of any."""
        return CallPattern(self, None if args in ((), (None,)) else listed(args))

    def __or__(self, other: "DFPattern") -> "AltPattern":
        return AltPattern(self, other)

    def __add__(self, other: "DFPattern") -> "CallPattern":
        return ExprPattern(Op("add"))(self, other)

    def __sub__(self, other: "DFPattern") -> "CallPattern":
        return ExprPattern(Op("subtract"))(self, other)

    def __mul__(self, other: "DFPattern") -> "CallPattern":
        return ExprPattern(Op("multiply"))(self, other)

    def __truediv__(self, other: "DFPattern") -> "CallPattern":
        return ExprPattern(Op("divide"))(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> "AttrPattern":
        """The same with attributes of these values."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Any) -> "TypePattern":
        """The same of a type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> "DataTypePattern":
        """The same with elements of a dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> "ShapePattern":
        """The same of a shape."""
        return ShapePattern(self, shape)

    def optional(self, option_constructor: Callable[["DFPattern"], "DFPattern"]) -> "AltPattern":
        """The same, or what `option_constructor` makes of it: `pattern.optional(is_op("nn.relu"))`."""
        return AltPattern(option_constructor(self), self)

    def dominates(self, parent: "DFPattern", path: "DFPattern | None" = None) -> "DominatorPattern":
        """The same, where all that leads to it, along `path`, comes from `parent`."""
        return DominatorPattern(parent, path if path is not None else WildcardPattern(), self)


@dataclass(frozen=True, eq=False)
class ExprPattern(DFPattern):
    """This very expression, or operator."""

    expr: Any

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        if isinstance(expr, Op) or isinstance(self.expr, Op):
            return isinstance(expr, Op) and bool(expr == self.expr)
        return bool(tvm_ffi.structural_equal(expr, self.expr, map_free_vars=False))


@dataclass(frozen=True, eq=False)
class VarPattern(DFPattern):
    """A variable, of a name or of any."""

    name: str = ""

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        return isinstance(expr, Var) and self.name in ("", str(expr.name_hint))


@dataclass(frozen=True, eq=False)
class ConstantPattern(DFPattern):
    """A constant."""

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        return isinstance(expr, Constant)


class WildcardPattern(DFPattern):
    """Anything, or what it was redirected to, which may contain it."""

    is_part = False

    def __init__(self) -> None:
        self._target: DFPattern | None = None

    def redirect_to(self, pat: DFPattern) -> None:
        """From now on it matches what `pat` matches."""
        self._target = pat

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        return self._target is None or matcher.takes(self._target, expr)


@dataclass(frozen=True, eq=False)
class CallPattern(DFPattern):
    """A call; `args` are None for any."""

    op: DFPattern
    args: list[DFPattern] | None

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        if not isinstance(expr, Call) or not matcher.takes(self.op, expr.op):
            return False
        if self.args is None:
            return True
        mark = len(matcher.found)
        if _take_all(matcher, self.args, expr.args):
            return True
        matcher.forget(mark)
        is_either_way = isinstance(expr.op, Op) and str(expr.op.name) in _COMMUTATIVE
        return is_either_way and _take_all(matcher, self.args, list(expr.args)[::-1])


@dataclass(frozen=True, eq=False)
class FunctionPattern(DFPattern):
    """A function; `params` are None for any."""

    params: list[DFPattern] | None
    body: DFPattern

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        if not isinstance(expr, Function):
            return False
        return (self.params is None or _take_all(matcher, self.params, expr.params)) and matcher.takes(
            self.body, expr.body
        )


@dataclass(frozen=True, eq=False)
class TuplePattern(DFPattern):
    """A tuple; `fields` are None for any."""

    fields: list[DFPattern] | None

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        return isinstance(expr, Tuple) and (self.fields is None or _take_all(matcher, self.fields, expr.fields))


@dataclass(frozen=True, eq=False)
class TupleGetItemPattern(DFPattern):
    """A field of a tuple; `index` is None for any."""

    tuple: DFPattern
    index: int | None = None

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        if not isinstance(expr, TupleGetItem) or self.index not in (None, -1, int(expr.index)):
            return False
        return matcher.takes(self.tuple, expr.tuple_value)


@dataclass(frozen=True, eq=False)
class IfPattern(DFPattern):
    """A choice."""

    cond: DFPattern
    true_branch: DFPattern
    false_branch: DFPattern

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        parts = [self.cond, self.true_branch, self.false_branch]
        return isinstance(expr, If) and _take_all(matcher, parts, [expr.cond, expr.true_branch, expr.false_branch])


@dataclass(frozen=True, eq=False)
class LetPattern(DFPattern):
    """A binding."""

    var: DFPattern
    value: DFPattern
    body: DFPattern

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        parts = [self.var, self.value, self.body]
        return isinstance(expr, Let) and _take_all(matcher, parts, [expr.var, expr.value, expr.body])


@dataclass(frozen=True, eq=False)
class AltPattern(DFPattern):
    """One or the other; the first that matches."""

    left: DFPattern
    right: DFPattern

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        return matcher.takes(self.left, expr) or matcher.takes(self.right, expr)


@dataclass(frozen=True, eq=False)
class AttrPattern(DFPattern):
    """A pattern with attributes."""

    pattern: DFPattern
    attrs: Mapping[str, Any]

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        found = {"TOpPattern": int(pattern_of(expr))} if isinstance(expr, Op) else attributes_of(expr)
        is_equal = all(key in found and _plain(found[key]) == _plain(value) for key, value in self.attrs.items())
        return is_equal and matcher.takes(self.pattern, expr)


@dataclass(frozen=True, eq=False)
class TypePattern(DFPattern):
    """A pattern of a type."""

    pattern: DFPattern
    type: Any

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        return matcher.takes(self.pattern, expr) and type_of(expr) == self.type


@dataclass(frozen=True, eq=False)
class DataTypePattern(DFPattern):
    """A pattern of a dtype."""

    pattern: DFPattern
    dtype: str

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        ty = type_of(expr) if matcher.takes(self.pattern, expr) else None
        return isinstance(ty, TensorType) and str(ty.dtype) == self.dtype


@dataclass(frozen=True, eq=False)
class ShapePattern(DFPattern):
    """A pattern of a shape."""

    pattern: DFPattern
    shape: Sequence[Any]

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        ty = type_of(expr) if matcher.takes(self.pattern, expr) else None
        return isinstance(ty, TensorType) and ty == TensorType(self.shape, ty.dtype)


@dataclass(frozen=True, eq=False)
class DominatorPattern(DFPattern):
    """`child`, all of whose ways up, along `path`, come from `parent`."""

    parent: DFPattern
    path: DFPattern
    child: DFPattern

    is_part = False

    def accepts(self, expr: Any, matcher: Matcher) -> bool:
        """Whether an expression looks like this."""
        if not matcher.takes(self.child, expr):
            return False
        between: dict[Any, None] = {}
        pending, parent = _operands(expr), None
        while pending:
            node = pending.pop()
            if node in between or (parent is not None and node.same_as(parent)):
                continue
            mark = len(matcher.found)
            if parent is None and matcher.takes(self.parent, node):
                parent = node
            elif _operands(node):  # others come from nowhere, as biases do
                if not matcher.takes(self.path, node):
                    return False
                matcher.note(matcher.forget(mark))  # the path's patterns stand for something else at each node of it
                between[node] = None
                pending += _operands(node)
        if parent is None:
            return False
        inside = {expr, *between}
        leads_up = all(any(each in between or each.same_as(parent) for each in _operands(node)) for node in inside)
        return leads_up and all(matcher.readers[node] <= inside for node in (parent, *between))


_COMMUTATIVE = ("add", "multiply", "maximum", "minimum")


def _take_all(matcher: Matcher, patterns: Sequence[DFPattern], exprs: Sequence[Any]) -> bool:
    return len(patterns) == len(exprs) and all(map(matcher.takes, patterns, exprs))


def _operands(expr: Any) -> list[Any]:
    if isinstance(expr, Call):
        return list(expr.args)
    if isinstance(expr, TupleGetItem):
        return [expr.tuple_value]
    return list(expr.fields) if isinstance(expr, Tuple) else []


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def type_of(expr: Any) -> Any:
    """The type of an expression, found if it has none yet; None if it can't have one."""
    if not isinstance(expr, RelayExpr) or is_known(getattr(expr, "ty", None)):
        return getattr(expr, "ty", None)
    try:
        return typed(Function(free_vars(expr), expr), {}).body.ty
    except NeuronError:
        return None


def listed(patterns: Sequence[Any]) -> list[DFPattern]:
    """Patterns as a list.

    Raises TypeError: something among them is none.
    """
    for pattern in patterns:
        if not isinstance(pattern, DFPattern):
            raise TypeError(f"a pattern is made of patterns, not of {type(pattern).__name__}: {pattern!r}")
    return list(patterns)
