"""infer_types: a module of Relay with the type of every expression in it, as `relay.transform.InferType` gives it."""

from typing import Any

import tvm

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.ir.expr import Call, Function, If, Let, Tuple, TupleGetItem, Var
from tvm_neuron.relay.ir.functor import ExprMutator
from tvm_neuron.relay.ir.ty import FuncType, is_known
from tvm_neuron.relay.lower import Lowering, functions_of


def infer_types(mod: tvm.IRModule) -> tvm.IRModule:
    """A copy of `mod` in which every expression of Relay has its type.

    Raises ModelError: an operator does not take the types of its operands, or a variable has none.
    """
    functions = functions_of(mod)
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, Function):
            result[var] = typed(func, functions)
    return result


def typed(func: Function, functions: dict[str, Function]) -> Function:
    """One function with types."""
    lowering = Lowering(functions, notes_types=True)
    params = [lowering.parameter(param) for param in func.params]
    lowering.module(func, params)
    types = lowering.types | lowering.filled
    result = _Typed(types).visit(func)
    if any(not is_known(param.ty) for param in result.params):
        raise ModelError("a variable has no type, and nothing that uses it gives it one")
    return result


class _Typed(ExprMutator):
    """Copies expressions with the types that were found."""

    def __init__(self, types: dict[Any, Any]) -> None:
        super().__init__()
        self._types = types

    def visit_var(self, var: Var) -> Any:
        """A variable that had no type becomes one that has."""
        if is_known(var.ty) or var not in self._types:
            return var
        return Var(var.name_hint, self._types[var], var.span)

    def visit_call(self, call: Call) -> Any:
        """The call with its type."""
        args = [self.visit(arg) for arg in call.args]
        types = [arg.ty for arg in args] if all(is_known(arg.ty) for arg in args) else call.type_args
        return Call(self.visit(call.op), args, call.attrs, types, call.span, ty=self._types.get(call))

    def visit_tuple(self, tup: Tuple) -> Any:
        """The tuple with its type."""
        return Tuple([self.visit(field) for field in tup.fields], tup.span, self._types.get(tup))

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The field with its type."""
        return TupleGetItem(self.visit(op.tuple_value), op.index, op.span, self._types.get(op))

    def visit_let(self, let: Let) -> Any:
        """The binding with its type."""
        value = self.visit(let.value)
        if let.value in self._types:
            self._types.setdefault(let.var, self._types[let.value])
        return Let(self.visit(let.var), value, self.visit(let.body), let.span, self._types.get(let))

    def visit_if(self, ite: If) -> Any:
        """The choice with its type."""
        cond, yes, no = (self.visit(part) for part in (ite.cond, ite.true_branch, ite.false_branch))
        return If(cond, yes, no, ite.span, self._types.get(ite))

    def visit_function(self, fn: Function) -> Any:
        """The function with its type."""
        params, body = [self.visit(param) for param in fn.params], self._visit_from_below(fn.body)
        is_whole = is_known(body.ty) and all(is_known(param.ty) for param in params)
        ty = FuncType([param.ty for param in params], body.ty) if is_whole else None
        return Function(params, body, body.ty if is_known(body.ty) else None, attrs=fn.attrs, span=fn.span, ty=ty)
