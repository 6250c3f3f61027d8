"""TVM's modules that hold Relay's functions: made from expressions, printed, and told from those of Relax."""

from collections.abc import Mapping
from typing import Any

import tvm

from tvm_neuron.relay.analysis import free_vars
from tvm_neuron.relay.ir.expr import Function, RelayExpr, TupleWrapper, as_expr
from tvm_neuron.relay.text import module_text


def is_relay(mod: tvm.IRModule) -> bool:
    """Whether a function of the module is one of Relay."""
    return any(isinstance(func, Function) for _, func in mod.functions_items())


def module_of(expr: Any, functions: Mapping[Any, Any] | tvm.IRModule | None = None) -> tvm.IRModule:
    """A module whose `main` is `expr`, made a function of its free variables if it is none."""
    expr = as_expr(expr)
    main = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
    items = functions.functions_items() if isinstance(functions, tvm.IRModule) else list((functions or {}).items())
    others = {var: func for var, func in items if str(getattr(var, "name_hint", var)) != "main"}
    mod = tvm.IRModule(others)
    mod["main"] = main
    return mod


def install() -> None:
    """`tvm.IRModule.from_expr` takes Relay's expressions, modules print as Relay's did; again changes nothing."""
    if getattr(tvm.IRModule.from_expr, "takes_relay", False):
        return
    theirs = tvm.IRModule.from_expr

    def from_expr(expr: Any, functions: Any = None, type_defs: Any = None) -> tvm.IRModule:
        """A module whose `main` is `expr`."""
        del type_defs  # there are no types of a user's own here
        return module_of(expr, functions) if isinstance(expr, RelayExpr | TupleWrapper) else theirs(expr, functions)

    from_expr.takes_relay = True  # type: ignore[attr-defined]
    tvm.IRModule.from_expr = staticmethod(from_expr)
    tvm.IRModule.astext = _astext
    script = tvm.IRModule.__str__
    tvm.IRModule.__str__ = lambda mod: module_text(mod) if is_relay(mod) else script(mod)


def _astext(mod: tvm.IRModule, show_meta_data: bool = True, annotate: Any = None) -> str:
    del show_meta_data, annotate
    return module_text(mod) if is_relay(mod) else str(mod.script())
