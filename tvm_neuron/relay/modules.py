"""TVM's modules that hold Relay's functions: made from expressions, printed, and told from those of Relax."""

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm.ir import GlobalVar

from tvm_neuron.relay.analysis import free_vars
from tvm_neuron.relay.ir.expr import Call, Function, RelayExpr, TupleWrapper, as_expr
from tvm_neuron.relay.open_model import OpenModel
from tvm_neuron.relay.text import module_text


def is_relay(mod: tvm.IRModule) -> bool:
    """Whether a function of the module is one of Relay, or a model that is still open."""
    return any(isinstance(func, Function | OpenModel) for _, func in mod.functions_items())


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
    """TVM's modules and names of functions take Relay's expressions, and print as they did; again changes nothing."""
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
    GlobalVar.__call__ = _calling(GlobalVar.__call__)
    script = tvm.IRModule.__str__
    tvm.IRModule.__str__ = lambda mod: module_text(mod) if is_relay(mod) else script(mod)


def _calling(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def call(var: GlobalVar, *args: Any) -> Any:
        """A call of the function, of Relay if its arguments are."""
        if any(isinstance(arg, RelayExpr | TupleWrapper) for arg in args):
            return Call(var, [as_expr(arg) for arg in args])
        return theirs(var, *args)

    return call


def _astext(mod: tvm.IRModule, show_meta_data: bool = True, annotate: Any = None) -> str:
    del show_meta_data, annotate
    return module_text(mod) if is_relay(mod) else str(mod.script())
