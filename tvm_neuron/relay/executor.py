"""`relay.create_executor`: compile and run an expression at once."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.errors import InputError, OptionError
from tvm_neuron.relay import build_module
from tvm_neuron.relay.ir.expr import Function, Var
from tvm_neuron.relay.ir.functor import bind
from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.lower import main_of, to_relax
from tvm_neuron.relay.modules import is_relay, module_of

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
        run = _Compiled(mod, self.target, self._params)
        return run if run.is_symbolic else run.for_shapes(())


class _Compiled:
    """A module as a function of its inputs, compiled for the shapes of each call where the module leaves them open."""

    def __init__(self, mod: tvm.IRModule, target: Any, params: Mapping[str, Any] | None) -> None:
        self._mod = mod
        self._target = target
        self._params = params
        self._runs: dict[tuple[tuple[int, ...], ...], Any] = {}
        main = main_of(mod) if is_relay(mod) else None
        self._inputs = main.params if main else []
        self.is_symbolic = any(not _is_static(param) for param in self._inputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = _by_name([param.name_hint for param in self._inputs], args, kwargs)
        return self.for_shapes(tuple(values[param.name_hint].shape for param in self._inputs))(**values)

    def for_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """The function for inputs of these shapes."""
        if shapes not in self._runs:
            self._runs[shapes] = self._compiled(self._with_shapes(shapes) if shapes else self._mod)
        return self._runs[shapes]

    def _with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> tvm.IRModule:
        main = main_of(self._mod)
        params = [
            Var(param.name_hint, TensorType(shape, param.type_annotation.dtype))
            for param, shape in zip(main.params, shapes, strict=True)
        ]
        binds = dict(zip(main.params, params, strict=True))
        return module_of(Function(params, bind(main, binds).body), self._mod)

    def _compiled(self, mod: tvm.IRModule) -> Any:
        lowered = to_relax(mod) if is_relay(mod) else mod
        executor = build_module.build(lowered, self._target, params=self._params)["default"](tvm.cpu())
        names = [spec.name for spec in executor.inputs]
        is_tuple = isinstance(lowered["main"].ret_ty, relax.TupleType)

        def run(*args: Any, **kwargs: Any) -> Any:
            executor.run(**_by_name(names, args, kwargs))
            found = [executor.get_output(index) for index in range(len(executor.outputs))]
            return found if is_tuple else found[0]

        return run


def _is_static(param: Var) -> bool:
    ty = param.type_annotation
    return not isinstance(ty, TensorType) or all(isinstance(dim, int) for dim in ty.shape)


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


def _by_name(names: list[str], args: Any, kwargs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    free = [name for name in names if name not in kwargs]
    if len(args) != len(free):
        raise InputError(f"the function takes {', '.join(names) or 'no inputs'}; {len(args)} values were given")
    values = dict(zip(free, args, strict=True)) | dict(kwargs)
    return {name: v.numpy() if isinstance(v, tvm.runtime.Tensor) else np.asarray(v) for name, v in values.items()}
