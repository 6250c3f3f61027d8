"""Passes that change a program's form: let bindings or none, shared expressions, functions put in place or removed."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm.ir import GlobalVar

from tvm_neuron.relay.ir.expr import Call, Constant, Function, If, Let, Op, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import ExprMutator, Substitute, children, post_order, rebuilt
from tvm_neuron.relay.transform.passes import attribute, function_pass_of, is_external, module_pass


def ToANormalForm() -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """Every value bound by a `let`."""
    return function_pass_of("ToANormalForm", lambda func, _mod: ToANormalFormExpr(func), opt_level=1)


def ToANormalFormExpr(e: Any) -> Any:  # noqa: N802
    """The same of one expression."""
    if isinstance(e, Function):
        return Function(e.params, _bound_by_lets(e.body), None, attrs=e.attrs, span=e.span)
    return _bound_by_lets(e)


def _bound_by_lets(expr: Any) -> Any:
    """`let`s for all that is computed outside of branches and functions; these have their own."""
    values: dict[Any, Any] = {}
    lets: list[tuple[Var, Any]] = []
    for node in post_order(expr, _outside):
        value = _in_normal_form(node, values)
        if isinstance(node, Var | Constant | GlobalVar):
            values[node] = value
        elif isinstance(node, Let):
            lets.append((node.var, values[node.value]))
            values[node] = _bound_by_lets(node.body)
        else:
            values[node] = Var(f"x_{len(lets)}")
            lets.append((values[node], value))
    result = values[expr]
    for var, value in reversed(lets):
        result = Let(var, value, result)
    return result


def _outside(node: Any) -> list[Any]:
    if isinstance(node, If):
        return [node.cond]
    if isinstance(node, Let):
        return [node.value]
    return [] if isinstance(node, Function) else children(node)


def _in_normal_form(node: Any, values: dict[Any, Any]) -> Any:
    match node:
        case Call() | Tuple() | TupleGetItem():
            return rebuilt(node, values)
        case If():
            yes, no = (_bound_by_lets(branch) for branch in (node.true_branch, node.false_branch))
            return If(values[node.cond], yes, no, node.span)
        case Function():
            return node if is_external(node) or attribute(node, "Primitive") else ToANormalFormExpr(node)
    return node


def ToGraphNormalForm() -> tvm.transform.Pass:  # noqa: N802
    """No `let`: what they bind stands where it is used."""
    return function_pass_of("ToGraphNormalForm", lambda func, _mod: _Unbound().visit(func), opt_level=1)


class _Unbound(ExprMutator):
    def visit_let(self, let: Let) -> Any:
        """The body with the value for the variable."""
        body: Any = let
        while isinstance(body, Let):
            self.memo_map[body.var] = self._visit_from_below(body.value)
            body = body.body
        return self._visit_from_below(body)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> tvm.transform.Pass:  # noqa: N802
    """No `let` of a variable that nothing uses, and with `inline_once` none of one used once."""
    del ignore_impurity  # there are no side effects here
    return function_pass_of(
        "DeadCodeElimination", lambda func, _mod: _live(func, 1 if inline_once else 0), opt_level=1
    )


def _live(func: Function, most: int) -> Function:
    while True:
        uses: Counter[Any] = Counter(child for node in post_order(func) for child in children(node))
        after = _Live(uses, most).visit(func)
        if after.same_as(func):
            return func
        func = after


class _Live(ExprMutator):
    def __init__(self, uses: Counter[Any], most: int) -> None:
        super().__init__()
        self._uses = uses
        self._most = most

    def visit_let(self, let: Let) -> Any:
        """The body alone, if its variable is used at most so often."""
        count = self._uses[let.var] - 1  # without the binding itself
        if count > self._most:
            return super().visit_let(let)
        if count:
            self.memo_map[let.var] = self._visit_from_below(let.value)
        return self._visit_from_below(let.body)


def EliminateCommonSubexpr(fskip: Callable[[Any], bool] | None = None) -> tvm.transform.Pass:  # noqa: N802
    """Equal calls of operators as one, but for those for which `fskip` is true."""
    return function_pass_of("EliminateCommonSubexpr", lambda func, _mod: _Common(fskip).visit(func), opt_level=3)


class _Common(ExprMutator):
    def __init__(self, fskip: Callable[[Any], bool] | None) -> None:
        super().__init__()
        self._skips = fskip or (lambda _: False)
        self._seen: dict[Any, Any] = {}

    def visit_call(self, call: Call) -> Any:
        """The first call of that operator on the same values."""
        new = super().visit_call(call)
        if not isinstance(new.op, Op) or self._skips(call):
            return new
        return self._seen.setdefault((str(new.op), tuple(new.args), str(new.attrs.as_dict())), new)

    def visit_constant(self, constant: Constant) -> Any:
        """The first scalar of that dtype and value."""
        if constant.data.shape:
            return constant
        return self._seen.setdefault((str(constant.data.dtype), constant.data.numpy().tobytes()), constant)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The first such field of the tuple."""
        new = super().visit_tuple_getitem(op)
        return self._seen.setdefault((new.tuple_value, int(new.index)), new)


def Inline() -> tvm.transform.Pass:  # noqa: N802
    """Functions with the attribute `Inline` in place of their names, opened unless another compiler has them."""
    return module_pass("Inline", _inlined, opt_level=1)


def _inlined(mod: tvm.IRModule) -> tvm.IRModule:
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, Function)}
    marked = {name: func for name, func in functions.items() if attribute(func, "Inline")}

    class InPlace(ExprMutator):
        def visit_call(self, call: Call) -> Any:
            func = marked.get(str(call.op.name_hint)) if isinstance(call.op, GlobalVar) else None
            if func is None:
                return super().visit_call(call)
            args = [self.visit(arg) for arg in call.args]
            if is_external(func) or attribute(func, "Primitive"):
                return Call(func, args, call.attrs, call.type_args, call.span)
            return Substitute(dict(zip(func.params, args, strict=True))).visit(func.body)

    result = tvm.IRModule({}, attrs=mod.attrs)
    for var, func in mod.functions_items():
        if var.name_hint not in marked:
            result[var] = InPlace().visit(func) if isinstance(func, Function) else func
    return result


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> tvm.transform.Pass:  # noqa: N802
    """Without the functions that the entries (`main` by default) don't call."""
    entries = list(entry_functions or ["main"])
    return module_pass("RemoveUnusedFunctions", lambda mod: _used(mod, entries), opt_level=1)


def _used(mod: tvm.IRModule, entries: list[str]) -> tvm.IRModule:
    functions = {var.name_hint: (var, func) for var, func in mod.functions_items()}
    reached: dict[str, None] = {}
    pending = [name for name in entries if name in functions]
    while pending:
        name = pending.pop()
        if name in reached:
            continue
        reached[name] = None
        func = functions[name][1]
        nodes = post_order(func) if isinstance(func, Function) else []
        pending += [str(node.name_hint) for node in nodes if isinstance(node, GlobalVar)]
    return tvm.IRModule({functions[name][0]: functions[name][1] for name in functions if name in reached}, mod.attrs)
