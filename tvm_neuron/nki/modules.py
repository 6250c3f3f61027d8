"""The names under which kernels import the language: `neuronxcc.nki...` (Beta 1) and `nki...` (Beta 2 and later).

They resolve to this package where nothing else is installed that has them.
"""

import difflib
import functools
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from tvm_neuron.errors import KernelError
from tvm_neuron.nki import composites, cores, isa, language, later, launch, placing
from tvm_neuron.nki.dialects import DIALECTS, Dialect
from tvm_neuron.nki.kernel import jit
from tvm_neuron.nki.source import place


class _Typing:
    """An annotation that may be subscripted with a shape, and means nothing to Python."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getitem__(self, shape: Any) -> "_Typing":
        return self


class _Advice:
    """Advice to the vendor's compiler as a context, or as one of a loop's `directives`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _passed(function: Any = None, *_: Any, **__: Any) -> Any:
    """A decorator that advises the vendor's compiler: the function itself."""
    return function if callable(function) else _passed


_TYPING = {name: _Typing(name) for name in ("tensor", "mutable_tensor", "mutable", "scalar")}
_ADVICE = ("enable_stack_allocator", "skip_middle_end_transformations", "force_auto_alloc", "multi_buffer")
_COMPILER = dict.fromkeys(_ADVICE, _passed) | {"sbuf": placing.sbuf, "psum": placing.psum, "no_reorder": _Advice}


def _launch(dialect: Dialect) -> dict[str, Any]:
    forms: dict[str, Any] = {
        "jit": jit,
        "baremetal": launch.baremetal,
        "benchmark": launch.benchmark,
        "profile": launch.profile,
    }
    found: dict[str, Any] = {name: functools.partial(form, dialect=dialect) for name, form in forms.items()}
    others = {"simulate_kernel": launch.simulate_kernel, "simulate": launch.simulate, "trace": launch.trace}
    return found | others | {"tensor": _TYPING["tensor"], "dtype": np.dtype}


_LANGUAGE = {name: value for name, value in vars(language).items() if not name.startswith("_")}
_LANGUAGE |= {"bool": language.bool_, "range": language.static_range, "dtype": np.dtype}  # Python's own names there
_LANGUAGE |= composites.NAMES | {"nc": cores.nc, "spmd_dim": cores.spmd_dim}
_CONSTANTS = {"sizeinbytes": lambda dtype: np.dtype(dtype).itemsize, "sbuf_min_align": 1}


def _allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, **_: Any) -> bool:
    return bool(np.allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol, atol))


_COLLECTIVES: dict[str, Any] = {name: later.refusing(name, later.BETWEEN_CHIPS) for name in later.COLLECTIVES}
_COLLECTIVES |= {"ReplicaGroup": _Typing("ReplicaGroup")}


def _package(dialect: Dialect) -> dict[str, dict[str, Any]]:
    name = dialect.package
    return {
        name: _launch(dialect),
        f"{name}.language": _LANGUAGE,
        f"{name}.language.constants": _CONSTANTS,
        f"{name}.isa": isa.namespace(dialect.returns),
        f"{name}.isa.constants": isa.CONSTANTS,
        f"{name}.collectives": _COLLECTIVES,
        f"{name}.typing": _TYPING,
        f"{name}.compiler": _COMPILER,
        f"{name}.compiler.sbuf": vars(placing.sbuf),
        f"{name}.compiler.psum": vars(placing.psum),
    }


MODULES: dict[str, dict[str, Any]] = {
    "neuronxcc": {},
    "neuronxcc.starfish": {},
    "neuronxcc.starfish.support": {},
    "neuronxcc.starfish.support.util": {"allclose": _allclose},
}
for _dialect in DIALECTS:
    MODULES |= _package(_dialect)


class _UnknownNameError(KernelError, AttributeError):
    """A name that the language has not, or the model does not know."""


def _unknown(module: str, name: str) -> NoReturn:
    if name.startswith("__") or f"{module}.{name}" in MODULES:
        raise AttributeError(name)
    near = difflib.get_close_matches(name, MODULES[module], 1)
    hint = f"; is {near[0]} meant?" if near else ""
    raise _UnknownNameError(f"{module} has no {name} in this model{hint} ({place()})")


class _Finder(MetaPathFinder, Loader):
    """Finds the names of `MODULES`, after all others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name, "The kernel language of tvm_neuron.nki under the name that kernels import.")

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(MODULES[module.__name__])
        module.__getattr__ = functools.partial(_unknown, module.__name__)  # type: ignore[method-assign]
        for name in MODULES:
            parent, _, child = name.rpartition(".")
            if parent == module.__name__:
                __import__(name)
                setattr(module, child, sys.modules[name])


def install() -> None:
    """Has kernels' imports resolve, where nothing else does it."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
