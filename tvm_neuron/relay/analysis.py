"""`relay.analysis`: what an expression is made of."""

from collections import Counter
from typing import Any

import tvm

from tvm_neuron.relay.ir.expr import Call, Constant, Function, Let, Op, Var
from tvm_neuron.relay.ir.functor import children, post_order, post_order_visit
from tvm_neuron.relay.ir.ty import TensorType, is_known

__all__ = [
    "all_dtypes", "all_vars", "bound_vars", "check_constant", "check_kind", "free_vars", "list_op_freqs",
    "post_order_visit", "well_formed",
]  # fmt: skip


def all_vars(expr: Any) -> list[Var]:
    """All variables, in the order in which they are met."""
    return [node for node in post_order(expr) if isinstance(node, Var)]


def bound_vars(expr: Any) -> list[Var]:
    """The parameters of functions, and what `Let` binds."""
    found: dict[Var, None] = {}
    for node in post_order(expr):
        if isinstance(node, Function):
            found |= dict.fromkeys(node.params)
        elif isinstance(node, Let):
            found[node.var] = None
    return list(found)


def free_vars(expr: Any) -> list[Var]:
    """The variables that come from outside, in the order in which they are met."""
    bound = set(bound_vars(expr))
    return [var for var in all_vars(expr) if var not in bound]


def check_constant(expr: Any) -> bool:
    """Whether it is a constant, or made of constants alone."""
    return isinstance(expr, Constant) or (bool(children(expr)) and all(map(check_constant, children(expr))))


def check_kind(t: Any, mod: tvm.IRModule | None = None) -> int:
    """The kind of a type; all types of this Relay are types of values, kind 0.

    Raises TypeError: `t` is no type.
    """
    del mod
    if not is_known(t):
        raise TypeError(f"{t!r} is no type of Relay")
    return 0


def well_formed(expr: Any) -> bool:
    """Whether each variable is bound at most once."""
    if isinstance(expr, tvm.IRModule):
        return all(well_formed(func) for _, func in expr.functions_items() if isinstance(func, Function))
    nodes = post_order(expr)
    bound = [node.var for node in nodes if isinstance(node, Let)]
    bound += [param for node in nodes if isinstance(node, Function) for param in node.params]
    return len(bound) == len(set(bound))


def all_dtypes(expr: Any) -> set[str]:
    """The dtypes of all tensors of which the type is known."""
    return {str(node.ty.dtype) for node in post_order(expr) if isinstance(getattr(node, "ty", None), TensorType)}


def list_op_freqs(mod: tvm.IRModule) -> dict[str, int]:
    """How often each operator is called in the functions of a module."""
    counts: Counter[str] = Counter()
    for _, func in mod.functions_items():
        if isinstance(func, Function):
            calls = [node for node in post_order(func) if isinstance(node, Call) and isinstance(node.op, Op)]
            counts.update(str(call.op.name) for call in calls)
    return dict(counts)
