"""What is done where patterns match: callbacks that give something else, and functions made of the matches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi

from tvm_neuron.relay.dataflow_pattern.matching import Match, Pattern, matches_in
from tvm_neuron.relay.infer import infer_types
from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import ExprMutator, children, post_order
from tvm_neuron.relay.ir.ty import is_known
from tvm_neuron.relay.modules import module_of

_MOST_ROUNDS = 100


class DFPatternCallback:
    """Something to put where `pattern` matches; write a class that sets it and has the method `callback`."""

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern: Any = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: Any) -> Any:
        """`expr` with every match replaced."""
        return rewrite(self, expr)

    def callback(self, pre: Any, post: Any, node_map: Mapping[Any, list[Any]]) -> Any:
        """What to put for `post`, which is `pre` with what it is made of rewritten; `node_map` has what matched."""
        raise NotImplementedError(f"{type(self).__name__} has no method callback")


def rewrite(callbacks: Any, expr: Any, mod: tvm.IRModule | None = None) -> Any:
    """`expr` with what callbacks give for the matches of their patterns, until those not `rewrite_once` change nothing.

    Raises ValueError: a callback has no pattern.
    """
    listed: Sequence[DFPatternCallback] = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for callback in listed:
        if callback.pattern is None:
            raise ValueError(f"{type(callback).__name__} has no pattern: set self.pattern")
    for count in range(_MOST_ROUNDS):
        before = expr
        for callback in listed:
            if callback.rewrite_once and count:
                continue
            expr = _with_types(expr, mod) if callback.require_type else expr
            expr = _Rewriter(callback, matches_in(callback.pattern, expr)).visit(expr)
        if expr.same_as(before) or tvm_ffi.structural_equal(expr, before):
            break
    return expr


def _with_types(expr: Any, mod: tvm.IRModule | None) -> Any:
    main = infer_types(module_of(expr, mod))["main"]
    return main if isinstance(expr, Function) else main.body


class _AtRoots(ExprMutator):
    """Does something else at the roots of matches than elsewhere."""

    def __init__(self, matches: Sequence[Match]) -> None:
        super().__init__()
        self._matches = {match.root: match for match in matches}

    def _method(self, expr: Any) -> Callable[[Any], Any]:
        method = super()._method(expr)
        match = self._matches.get(expr)
        return method if match is None else lambda node: self._at(match, method(node))

    def _at(self, match: Match, post: Any) -> Any:
        raise NotImplementedError


class _Rewriter(_AtRoots):
    def __init__(self, callback: DFPatternCallback, matches: Sequence[Match]) -> None:
        super().__init__(matches)
        self._callback = callback

    def _at(self, match: Match, post: Any) -> Any:
        node_map: dict[Any, list[Any]] = {}
        for pattern, expr in match.found:
            new = expr if isinstance(expr, Op) else post if expr.same_as(match.root) else self.visit(expr)
            node_map.setdefault(pattern, []).append(new)
        return self._callback.callback(match.root, post, node_map)


def partition(
    pattern: Pattern, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Any], bool] = lambda _: True
) -> Any:
    """`expr` with a call of a function, with attributes `attrs`, for each match for whose root `check` holds."""
    matches = [match for match in matches_in(pattern, expr) if check(match.root)]
    return _Partitioner(matches, attrs or {}).visit(expr) if matches else expr


class _Partitioner(_AtRoots):
    def __init__(self, matches: Sequence[Match], attrs: Mapping[str, Any]) -> None:
        super().__init__(matches)
        self._attrs = attrs
        self._count = 0

    def _at(self, match: Match, post: Any) -> Any:
        copied = _Copied(match.parts, f"FunctionVar_{self._count}")
        self._count += 1
        body = copied.visit(match.root)
        func = Function(list(copied.params.values()), body)
        for key, value in self._attrs.items():
            func = func.with_attr(key, value)
        func = func.with_attr("PartitionedFromPattern", copied.names())
        return Call(func, [self.visit(arg) for arg in copied.params])


class _Copied(ExprMutator):
    """Copies a match; `params` are the variables for what feeds it, by what that is."""

    def __init__(self, parts: frozenset[Any], prefix: str) -> None:
        super().__init__()
        self.params: dict[Any, Var] = {}
        self._parts, self._prefix = parts, prefix
        self._names: list[str] = []

    def names(self) -> str:
        """The nodes of the match, as Relay named them: `nn.conv2d_nn.relu_`."""
        return "".join(self._names)

    def _visit_from_below(self, expr: Any) -> Any:
        for node in post_order(expr, self._below):
            if node not in self.memo_map:
                self.memo_map[node] = self._copied(node)
        return self.memo_map[expr]

    def _below(self, node: Any) -> list[Any]:
        return children(node) if node in self._parts and not isinstance(node, Function) else []

    def _copied(self, node: Any) -> Any:
        if node in self._parts:
            self._names.append(_named(node))
            return node if isinstance(node, Constant | Function) else self._method(node)(node)
        if node not in self.params:
            self.params[node] = Var(f"{self._prefix}_{len(self.params)}", node.ty if is_known(node.ty) else None)
        return self.params[node]


def _named(node: Any) -> str:
    """How a node shows in the name of a function that was made of a match."""
    match node:
        case Call():
            return f"{node.op.name}_" if isinstance(node.op, Op) else "Call_"
        case TupleGetItem():
            return f"TupleGetItem{node.index}_"
        case Tuple():
            return "Tuple_"
        case Function():
            return "".join(map(_named, post_order(node.body))) + "Function"
        case If():
            return "If_"
        case Let():
            return "Let_"
    return ""
