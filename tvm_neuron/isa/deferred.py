"""Deferred: a large view of memory on which elementwise operations wait, to be done in one pass when they are wanted.

NumPy takes one for an array. What an instruction computes with ufuncs of a chain, such as x * scale + bias and the
larger of that and 0, then goes once through memory, on all cores; anything else gets the values as NumPy's array.
"""

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from tvm_neuron.isa.widen import as_float32
from tvm_neuron.native import is_chained, run_chain

Array = NDArray[Any]
_OPERATIONS: dict[Any, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.divide: "divide",
    np.maximum: "max",
    np.minimum: "min",
}
_FLOAT32 = np.dtype(np.float32)
_EITHER_WAY = (np.add, np.multiply)
_MOST_STEPS = 32


class Deferred(NDArrayOperatorsMixin):
    """float32 values: `source` in float32, and the result of each step's operation with its operand."""

    __slots__ = ("source", "steps")

    def __init__(self, source: Array, steps: tuple[tuple[str, Array], ...] = ()) -> None:
        self.source = source
        self.steps = steps

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the values."""
        return np.broadcast_shapes(self.source.shape, *(operand.shape for _, operand in self.steps))

    @property
    def ndim(self) -> int:
        """Axes of the values."""
        return len(self.shape)

    def values(self, dtype: np.dtype = _FLOAT32) -> Array:
        """The values, rounded to `dtype`, float32 or bfloat16; a view of memory where nothing is to be done."""
        if not self.steps and dtype == self.source.dtype:
            return self.source
        if not self.steps and dtype == _FLOAT32:
            return as_float32(self.source)
        found = np.empty_like(self.source, dtype, shape=self.shape)
        self.write(found)
        return found

    def write(self, target: Array) -> None:
        """Puts the values into `target`, float32 or bfloat16, which lies apart from where they come from, or there."""
        run_chain(target, self.source, self.steps)

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values(), dtype, copy=copy)  # what np.asarray calls

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and ufunc in _OPERATIONS and not options:
            if not isinstance(inputs[0], Deferred) and ufunc in _EITHER_WAY:
                inputs = inputs[::-1]
            longer = _longer(_OPERATIONS[ufunc], *inputs)
            if longer is not None:
                return longer
        return getattr(ufunc, method)(*(_values(each) for each in inputs), **options)

    def __getitem__(self, index: Any) -> Any:
        return self.values()[index] if self.steps else Deferred(self.source[index])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.values(), name)


def _longer(operation: str, left: Any, right: Any) -> Deferred | None:
    """The chain with one more step; None where an operand isn't such a chain or can't be a step's."""
    if not isinstance(left, Deferred) or len(left.steps) == _MOST_STEPS:
        return None
    operand = right.source if isinstance(right, Deferred) and not right.steps else np.asarray(right)
    return Deferred(left.source, (*left.steps, (operation, operand))) if is_chained(operand.dtype) else None


def _values(value: Any) -> Any:
    return value.values() if isinstance(value, Deferred) else value
