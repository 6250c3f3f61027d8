"""Walks over expressions: ExprVisitor, ExprMutator and post_order_visit, with the methods that Relay's had."""

from collections.abc import Callable
from typing import Any

from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var


def children(expr: Any) -> list[Any]:
    """The expressions that `expr` is made of, in the order in which they are computed."""
    match expr:
        case Call():
            return [*([] if isinstance(expr.op, Op) else [expr.op]), *expr.args]
        case Tuple():
            return list(expr.fields)
        case TupleGetItem():
            return [expr.tuple_value]
        case Let():
            return [expr.var, expr.value, expr.body]
        case If():
            return [expr.cond, expr.true_branch, expr.false_branch]
        case Function():
            return [*expr.params, expr.body]
    return []


def post_order(expr: Any, below: Callable[[Any], list[Any]] = children) -> list[Any]:
    """All expressions below `expr` and itself, each once, after those that it is made of; of any depth."""
    done: dict[Any, None] = {}
    pending = [(expr, False)]
    while pending:
        node, is_open = pending.pop()
        if is_open:
            done[node] = None
        elif node not in done:
            pending.append((node, True))
            pending += [(child, False) for child in reversed(below(node)) if child not in done]
    return list(done)


def post_order_visit(expr: Any, fvisit: Callable[[Any], None]) -> None:
    """Call `fvisit` on every expression, once, after those that it is made of."""
    for node in post_order(expr):
        fvisit(node)


def rebuilt(node: Any, inner: dict[Any, Any]) -> Any:
    """The node made of what `inner` has for its parts."""
    match node:
        case Call():
            op = node.op if isinstance(node.op, Op) else inner[node.op]
            return Call(op, [inner[arg] for arg in node.args], node.attrs, node.type_args, node.span)
        case Tuple():
            return Tuple([inner[field] for field in node.fields], node.span)
        case TupleGetItem():
            return TupleGetItem(inner[node.tuple_value], node.index, node.span)
    raise TypeError(f"{type(node).__name__} is not made of other expressions alone")


class ExprFunctor:
    """Calls `visit_<kind>` on an expression, once for each; what it returned is in `memo_map`."""

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}

    def visit(self, expr: Any) -> Any:
        """What the method of the kind of `expr` returns.

        Raises NotImplementedError: there is no method for that kind.
        """
        if expr not in self.memo_map:
            self.memo_map[expr] = self._method(expr)(expr)
        return self.memo_map[expr]

    def _method(self, expr: Any) -> Callable[[Any], Any]:
        for kind, name in _METHODS.items():
            if isinstance(expr, kind):
                method = getattr(self, name, None)
                if method is None:
                    raise NotImplementedError(f"{type(self).__name__} has no method {name}")
                return method
        raise NotImplementedError(f"{type(expr).__name__} is no expression of Relay")


_METHODS = {
    Function: "visit_function", Let: "visit_let", Call: "visit_call", Var: "visit_var", If: "visit_if",
    Tuple: "visit_tuple", TupleGetItem: "visit_tuple_getitem", GlobalVar: "visit_global_var", Op: "visit_op",
    Constant: "visit_constant",
}  # fmt: skip


class ExprVisitor(ExprFunctor):
    """Visits everything below an expression; override the methods of the kinds that matter."""

    def _visit_below(self, expr: Any) -> None:
        for child in children(expr):
            self.visit(child)

    visit_tuple = visit_tuple_getitem = visit_let = visit_if = visit_function = _visit_below
    visit_var = visit_global_var = visit_constant = visit_op = _visit_below

    def visit_call(self, call: Call) -> None:
        """The operator, then the arguments."""
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)


class ExprMutator(ExprFunctor):
    """Copies an expression with what the overridden methods return; what nothing changed stays the same node."""

    _is_walking = False

    def visit(self, expr: Any) -> Any:
        """The new expression. Deep ones are walked from below first, so that Python's stack suffices."""
        if self._is_walking:
            return super().visit(expr)
        self._is_walking = True
        try:
            return self._visit_from_below(expr)
        finally:
            self._is_walking = False

    def _visit_from_below(self, expr: Any) -> Any:
        for node in post_order(expr, lambda node: [] if isinstance(node, Let | Function) else children(node)):
            super().visit(node)
        return super().visit(expr)

    def visit_var(self, var: Var) -> Any:
        """The variable itself."""
        return var

    def visit_global_var(self, var: GlobalVar) -> Any:
        """The variable itself."""
        return var

    def visit_constant(self, constant: Constant) -> Any:
        """The constant itself."""
        return constant

    def visit_op(self, op: Op) -> Any:
        """The operator itself."""
        return op

    def visit_call(self, call: Call) -> Any:
        """The call of new arguments."""
        op, args = self.visit(call.op), [self.visit(arg) for arg in call.args]
        if op == call.op and _same(args, call.args):
            return call
        return Call(op, args, call.attrs, call.type_args, call.span)

    def visit_tuple(self, tup: Tuple) -> Any:
        """The tuple of new fields."""
        fields = [self.visit(field) for field in tup.fields]
        return tup if _same(fields, tup.fields) else Tuple(fields, tup.span)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The field of the new tuple."""
        value = self.visit(op.tuple_value)
        return op if value.same_as(op.tuple_value) else TupleGetItem(value, op.index, op.span)

    def visit_let(self, let: Let) -> Any:
        """The binding of new parts."""
        var, value, body = parts = [self._visit_from_below(part) for part in (let.var, let.value, let.body)]
        return let if _same(parts, (let.var, let.value, let.body)) else Let(var, value, body, let.span)

    def visit_if(self, ite: If) -> Any:
        """The choice between new branches."""
        cond, yes, no = parts = [self.visit(part) for part in (ite.cond, ite.true_branch, ite.false_branch)]
        return ite if _same(parts, (ite.cond, ite.true_branch, ite.false_branch)) else If(cond, yes, no, ite.span)

    def visit_function(self, fn: Function) -> Any:
        """The function of new parameters and body."""
        params, body = [self.visit(param) for param in fn.params], self._visit_from_below(fn.body)
        if _same(params, fn.params) and body.same_as(fn.body):
            return fn
        return Function(params, body, None, attrs=fn.attrs, span=fn.span)


def _same(new: Any, old: Any) -> bool:
    return len(new) == len(old) and all(a.same_as(b) for a, b in zip(new, old, strict=True))


class Substitute(ExprMutator):
    """Replaces variables by expressions."""

    def __init__(self, values: dict[Any, Any]) -> None:
        super().__init__()
        self._values = values

    def visit_var(self, var: Var) -> Any:
        """What stands for the variable."""
        return self._values.get(var, var)


def bind(expr: Any, binds: dict[Any, Any]) -> Any:
    """`expr` with its free variables replaced; of a function the parameters, which it then no longer has."""
    mutator = Substitute(binds)
    if not isinstance(expr, Function):
        return mutator.visit(expr)
    params = [param for param in expr.params if param not in binds]
    return Function(params, mutator.visit(expr.body), None, attrs=expr.attrs, span=expr.span)
