"""`relay.create_executor`: compile and run an expression at once."""

from collections.abc import Mapping
from typing import Any

import tvm

from tvm_neuron.errors import OptionError
from tvm_neuron.relay.compiled import Compiled
from tvm_neuron.relay.ir.expr import Function, Var
from tvm_neuron.relay.ir.functor import bind
from tvm_neuron.relay.modules import module_of

KINDS = ("graph", "vm", "debug", "aot")


class Executor:
    """Compiles what `evaluate` is given for a target; the kinds of TVM 0.18 are one here."""

    def __init__(self, mod: tvm.IRModule, target: Any, params: Mapping[str, Any] | None) -> None:
        self.mod = mod
        self.target = target
        self._params = params

    def evaluate(self, expr: Any = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """A function of the inputs of `expr` (by default of the module's `main`), or its value if it has none.

        `binds` are values of free variables. Raises ModelError, CompileError: as `relay.build`.
        """
        if binds:
            expr = bind(expr, dict(binds))
        if expr is None:
            return self._function(self.mod)
        if isinstance(expr, Function):
            return self._function(module_of(expr, self.mod))
        if isinstance(expr, tvm.ir.GlobalVar):
            return self._function(module_of(self.mod[expr], self.mod))
        return self._function(module_of(Function([], expr), self.mod))()

    def _function(self, mod: tvm.IRModule) -> Any:
        return Compiled(mod, self.target, self._params)


def create_executor(
    kind: str = "debug", mod: tvm.IRModule | None = None, device: Any = None, target: Any = "neuron",
    params: Mapping[str, Any] | None = None,
) -> Executor:  # fmt: skip
    """An executor, which compiles and runs expressions; `kind` is graph, vm, debug or aot, which are alike here.

    `device` changes nothing: tensors live in the host's memory. Dimensions that are variables or `Any` get their sizes
    from each call.

    Raises OptionError: `kind` is another.
    """
    del device
    if kind not in KINDS:
        raise OptionError(f"create_executor: kind is '{kind}'; there are {', '.join(KINDS)}")
    return Executor(mod if mod is not None else tvm.IRModule(), target, params)
