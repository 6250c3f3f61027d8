"""What a pass over Relay is: TVM's own pass manager runs it, contexts and instruments know it by its name."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tvm
from tvm.ir.transform import ModulePass, PassInfo

from tvm_neuron.relay.infer import infer_types
from tvm_neuron.relay.ir.expr import Function

Rewrite: TypeAlias = Callable[[Function, tvm.IRModule], Function]
"""What a pass makes of one function of a module."""

YES = tvm.tirx.IntImm("int32", 1)
"""The value of attributes that are there or not, as scripts write it."""


class FunctionPass(ModulePass):
    """A pass that looks at one function of Relay at a time."""


def module_pass(name: str, run: Callable[[tvm.IRModule], tvm.IRModule], opt_level: int = 0) -> tvm.transform.Pass:
    """A pass over whole modules, before and after which all expressions have types."""

    @tvm.transform.module_pass(opt_level=opt_level, name=name)
    def apply(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        return infer_types(run(infer_types(mod)))

    return apply


def function_pass_of(name: str, rewrite: Rewrite, opt_level: int = 0) -> tvm.transform.Pass:
    """A pass over each function, but for those that are another compiler's."""
    return module_pass(name, lambda mod: on_functions(mod, rewrite), opt_level)


def on_functions(mod: tvm.IRModule, rewrite: Rewrite) -> tvm.IRModule:
    """A module in which `rewrite` has been applied to each function of Relay that is no other compiler's."""
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, Function) and not is_external(func):
            result[var] = rewrite(func, mod)
    return result


def is_external(func: Function) -> bool:
    """Whether another compiler was given the function."""
    return attribute(func, "Compiler") is not None


def attribute(func: Function, name: str) -> Any:
    """An attribute of a function, None where it has none of that name."""
    return func.attrs[name] if func.attrs and name in func.attrs else None


def function_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Make a pass of a function `(func, mod, ctx) -> func`, or of a class with the method `transform_function`.

    Raises ValueError: `opt_level` is missing. TypeError: it is neither.
    """
    if opt_level is None:
        raise ValueError("function_pass needs opt_level=..., the least optimisation level at which the pass runs")

    def decorate(given: Any) -> Any:
        if not callable(given):
            raise TypeError(f"function_pass takes a function or a class, not {type(given).__name__}")
        info = PassInfo(opt_level, name or given.__name__, list(required or []))
        if inspect.isclass(given):
            return _class_of_passes(given, info)
        return _made(FunctionPass.__new__(FunctionPass), given, info)

    return decorate if pass_func is None else decorate(pass_func)


def _made(made: Any, transform: Callable[..., Any], info: PassInfo) -> Any:
    def run(mod: tvm.IRModule, context: tvm.transform.PassContext) -> tvm.IRModule:
        return infer_types(on_functions(infer_types(mod), lambda func, whole: transform(func, whole, context)))

    made.__init_handle_by_constructor__(tvm.ir.transform._ffi_transform_api.MakeModulePass, run, info)
    return made


def _class_of_passes(given: Any, info: PassInfo) -> Any:
    class Made(FunctionPass):
        """The class whose objects are passes that the given class's objects carry out."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            inner = given(*args, **kwargs)
            _made(self, lambda func, mod, context: inner.transform_function(func, mod, context), info)
            self._inner = inner

        def __getattr__(self, key: str) -> Any:
            return getattr(self._inner, key)

    Made.__name__, Made.__doc__, Made.__module__ = given.__name__, given.__doc__, given.__module__
    return Made
