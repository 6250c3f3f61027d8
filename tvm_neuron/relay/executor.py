"""`relay.create_executor`: compile and run an expression at once."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.errors import InputError, OptionError
from tvm_neuron.relay.build_module import build
from tvm_neuron.relay.ir.expr import Function, Var
from tvm_neuron.relay.ir.functor import bind
from tvm_neuron.relay.lower import to_relax
from tvm_neuron.relay.modules import is_relay, module_of

KINDS = ("graph", "vm", "debug", "aot")


class Executor:
    """Compiles what `evaluate` is given for a target; the kinds of TVM 0.18 are one here."""

    def __init__(self, mod: tvm.IRModule, device: Any, target: Any, params: Mapping[str, Any] | None) -> None:
        self.mod = mod
        self.device = device
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
        lowered = to_relax(mod) if is_relay(mod) else mod
        executor = build(lowered, self.target, params=self._params)["default"](self.device or tvm.cpu())
        names = [spec.name for spec in executor.inputs]
        is_tuple = isinstance(lowered["main"].ret_ty, relax.TupleType)

        def run(*args: Any, **kwargs: Any) -> Any:
            values = _by_name(names, args, kwargs)
            executor.run(**values)
            found = [executor.get_output(index) for index in range(len(executor.outputs))]
            return found if is_tuple else found[0]

        return run


def create_executor(
    kind: str = "debug", mod: tvm.IRModule | None = None, device: Any = None, target: Any = "neuron",
    params: Mapping[str, Any] | None = None,
) -> Executor:  # fmt: skip
    """An executor, which compiles and runs expressions; `kind` is graph, vm, debug or aot, which are alike here.

    Raises OptionError: `kind` is another.
    """
    if kind not in KINDS:
        raise OptionError(f"create_executor: kind is '{kind}'; there are {', '.join(KINDS)}")
    return Executor(mod if mod is not None else tvm.IRModule(), device, target, params)


def _by_name(names: list[str], args: Any, kwargs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    free = [name for name in names if name not in kwargs]
    if len(args) != len(free):
        raise InputError(f"the function takes {', '.join(names) or 'no inputs'}; {len(args)} values were given")
    values = dict(zip(free, args, strict=True)) | dict(kwargs)
    return {name: v.numpy() if isinstance(v, tvm.runtime.Tensor) else np.asarray(v) for name, v in values.items()}
