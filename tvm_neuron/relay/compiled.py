"""compiled: a module as a function of its inputs, compiled again for shapes and values that it leaves to each call."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.codegen.share import multiplications
from tvm_neuron.errors import InputError
from tvm_neuron.frontend.onnx.needs import NeedsValueError
from tvm_neuron.frontend.onnx.stages import Stages
from tvm_neuron.profile.report import Report
from tvm_neuron.relay import build_module
from tvm_neuron.relay.ir.expr import Call, Function, Var
from tvm_neuron.relay.ir.functor import bind, post_order
from tvm_neuron.relay.ir.ty import TensorType, type_text
from tvm_neuron.relay.lower import main_of, to_relax
from tvm_neuron.relay.modules import is_relay, module_of
from tvm_neuron.relay.op.declare import COMPUTED
from tvm_neuron.relay.open_model import OpenModel
from tvm_neuron.relay.staged import Built, StagedExecutor
from tvm_neuron.runtime import Executor

Values: TypeAlias = Mapping[str, np.ndarray]


class Compiled:
    """Takes its inputs by position and name and gives a tensor, or a list of them for a tuple."""

    def __init__(self, mod: tvm.IRModule, target: Any, params: Mapping[str, Any] | None) -> None:
        self._mod = mod
        self._target = target
        self._params = params
        self._main: Function | OpenModel | None = main_of(mod) if is_relay(mod) else None
        self._inputs: list[Var] = list(self._main.params) if self._main is not None else []
        self.is_open = is_open(mod)
        self._needed = set[str]()
        self._made: dict[Any, tuple[Built | StagedExecutor, bool]] = {}
        self._last: Built | StagedExecutor | None = None
        if not self.is_open:
            self._made[()] = self._compiled(to_relax(mod) if is_relay(mod) else mod)

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        if self.is_open:
            return unique_names(self._inputs)
        return [spec.name for spec in _executor_of(self._made[()][0]).inputs]

    @property
    def report(self) -> Report:
        """What the last call costs, of one that ran in stages the sum over them.

        Raises InputError: there was no call, which tells what is compiled.
        """
        if self._last is None:
            raise InputError("there is no report before the first call, which tells the sizes that are compiled for")
        return self._last.report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for these inputs.

        Raises InputError: there are too many or too few; and what `relay.build` raises, if it has to be compiled.
        """
        executor, gives_tuple = self.loaded(by_name(self.names, args, kwargs))
        executor.run()
        found = [executor.get_output(index) for index in range(len(executor.outputs))]
        return found if gives_tuple else found[0]

    def loaded(self, values: Values) -> tuple[Executor | StagedExecutor, bool]:
        """The executor for inputs of these shapes, with these values set, and whether its result is a tuple."""
        self._last, gives_tuple = self._for(values) if self.is_open else self._made[()]
        executor = _executor_of(self._last)
        names = {spec.name for spec in executor.inputs}
        for name in names:
            executor.set_input(name, values[name])
        return executor, gives_tuple

    def _for(self, values: Values) -> tuple[Built | StagedExecutor, bool]:
        while True:
            known = {name: values[name] for name in sorted(self._needed)}
            key = (*(value.shape for value in values.values()), *(value.tobytes() for value in known.values()))
            if key in self._made:
                return self._made[key]
            try:
                self._made[key] = self._compiled(self._closed(values, known))
            except NeedsValueError as error:
                if not error.inputs - self._needed:
                    raise
                self._needed |= error.inputs

    def _closed(self, values: Values, known: Values) -> tvm.IRModule | Stages:
        shapes = {name: value.shape for name, value in values.items()}
        if isinstance(self._main, OpenModel):
            return self._main.closed({name: shape for name, shape in shapes.items() if name not in known}, known)
        assert self._main is not None
        named = list(zip(self.names, self._inputs, strict=True))
        for name, param in named:
            _check_shape(name, shapes[name], param.type_annotation)
        params = [Var(name, TensorType(shapes[name], param.type_annotation.dtype)) for name, param in named]
        body = bind(self._main, dict(zip(self._inputs, params, strict=True))).body
        return to_relax(module_of(Function(params, body), self._mod), known)

    def _compiled(self, mod: tvm.IRModule | Stages) -> tuple[Built | StagedExecutor, bool]:
        if isinstance(mod, Stages):
            return StagedExecutor(mod, self._built), len(mod.outputs) > 1
        return self._built(mod), isinstance(mod["main"].ret_ty, relax.TupleType)

    def _built(self, mod: tvm.IRModule) -> Built:
        library = build_module.build(mod, self._target, params=self._params)
        return Built(library, library["default"](tvm.cpu()), multiplications(mod["main"]))


def _executor_of(made: Built | StagedExecutor) -> Executor | StagedExecutor:
    return made.executor if isinstance(made, Built) else made


def is_open(mod: tvm.IRModule) -> bool:
    """Whether only calls tell all shapes of a module of Relay."""
    if not is_relay(mod):
        return False
    main = main_of(mod)
    if isinstance(main, OpenModel):
        return True
    return any(not _is_static(param) for param in main.params) or any(map(_is_computed, post_order(main)))


def _is_computed(expr: Any) -> bool:
    """Whether it is a call with attributes that are expressions."""
    return isinstance(expr, Call) and COMPUTED in expr.attrs


def _is_static(param: Var) -> bool:
    ty = param.type_annotation
    return not isinstance(ty, TensorType) or all(isinstance(dim, int) for dim in ty.shape)


def unique_names(params: list[Var]) -> list[str]:
    """The variables' names, numbered where they are the same, as in what they are compiled to."""
    names = [str(param.name_hint) for param in params]
    before = [names[:at].count(name) for at, name in enumerate(names)]
    return [f"{name}_{count}" if count else name for name, count in zip(names, before, strict=True)]


def _check_shape(name: str, shape: tuple[int, ...], ty: TensorType) -> None:
    """Raises InputError: the shape is not what the type has numbers for."""
    dims = list(ty.shape)
    is_same = all(size == dim for dim, size in zip(dims, shape, strict=False) if isinstance(dim, int))
    if len(shape) != len(dims) or not is_same:
        raise InputError(f"input '{name}' has the shape {shape}; the function takes {type_text(ty)}")


def by_name(names: list[str], args: Any, kwargs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Values given by position and name, by name.

    Raises InputError: there are too many or too few.
    """
    free = [name for name in names if name not in kwargs]
    if len(args) != len(free):
        raise InputError(f"the function takes {', '.join(names) or 'no inputs'}; {len(args)} values were given")
    values = dict(zip(free, args, strict=True)) | dict(kwargs)
    return {name: v.numpy() if isinstance(v, tvm.runtime.Tensor) else np.asarray(v) for name, v in values.items()}
