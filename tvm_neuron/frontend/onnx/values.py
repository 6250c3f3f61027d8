"""What the importer holds for each name of the graph: a Relax expression, a known array, a sequence or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.frontend.onnx.narrow import Narrow
from tvm_neuron.runtime.tensors import widened


class Known:
    """An array known at compile time; a constant of the Relax module only where an operator takes it as operand."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @cached_property
    def expr(self) -> relax.Expr:
        """The array as a Relax constant, in the type that carries it."""
        return relax.const(tvm.runtime.tensor(widened(np.ascontiguousarray(self.array).reshape(self.array.shape))))


Value = Any
"""relax.Expr | Known | Narrow | list[Value] (a sequence) | None (an operand left out, or an empty optional)."""


def shape_of(value: Value) -> tuple[int, ...] | None:
    """The static shape of a tensor, None where it is none or not known."""
    if isinstance(value, Known):
        return value.array.shape
    shape = getattr(getattr(value, "ty", None), "shape", None)
    if not isinstance(shape, relax.ShapeExpr) or not isinstance(value.ty, relax.TensorType):
        return None
    return tuple(int(dim) for dim in shape) if all(isinstance(dim, tvm.tirx.IntImm) for dim in shape) else None


def dtype_of(value: Value) -> str:
    """The dtype of a tensor by its NumPy name."""
    if isinstance(value, Known):
        return value.array.dtype.name
    return value.dtype if isinstance(value, Narrow) else str(value.ty.dtype)


class Scopes:
    """Values by name; a subgraph sees the names around it, a function does not. `None` is the value of no name."""

    def __init__(self) -> None:
        self._levels: list[dict[str, Value]] = [{}]
        self._needs: list[dict[str, frozenset[str]]] = [{}]

    def __contains__(self, name: str) -> bool:
        return any(name in level for level in self._levels)

    def __getitem__(self, name: str) -> Value:
        if not name:
            return None
        return next(level[name] for level in reversed(self._levels) if name in level)

    def get(self, name: str) -> Value:
        """The value of a name, None if it has none."""
        return self[name] if name in self else None  # noqa: SIM401 (this is that method)

    def known(self, name: str) -> np.ndarray | None:
        """The array behind a name, if it is known."""
        value = self[name]
        return value.array if isinstance(value, Known) else None

    def bind(self, name: str, value: Value, needs: frozenset[str]) -> None:
        """Give `name` a value in the innermost scope; `needs` are the model's inputs that it is computed from."""
        if name:
            self._levels[-1][name] = value
            self._needs[-1][name] = frozenset() if isinstance(value, Known) else needs

    def needs(self, *names: str) -> frozenset[str]:
        """The model's inputs that the named values are computed from."""
        found = [next((level[n] for level in reversed(self._needs) if n in level), frozenset()) for n in names]
        return frozenset().union(*found)

    @contextmanager
    def inner(self, isolated: bool = False) -> Iterator[None]:
        """A scope inside the current one (or beside it); what is bound in it ends with it."""
        levels, needs = self._levels, self._needs
        self._levels = [{}] if isolated else [*levels, {}]
        self._needs = [{}] if isolated else [*needs, {}]
        try:
            yield
        finally:
            self._levels, self._needs = levels, needs
