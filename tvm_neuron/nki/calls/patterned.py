"""Calls whose operand is a pattern over the indices of a tile: constants that are known when the kernel is traced."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa import DmaCopy, Select
from tvm_neuron.nki.calls.operands import on_chip
from tvm_neuron.nki.calls.pointwise import memset, tensor_copy
from tvm_neuron.nki.calls.transfers import load
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Index, Mask, as_index
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View


def values(index: Index, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """What an index is at every place of a lattice."""
    found = np.full((1,) * len(shape), index.start, np.int64)
    for at, (step, count) in enumerate(index.axes, len(shape) - len(index.axes)):
        found = found + (step * np.arange(count)).reshape([-1 if axis == at else 1 for axis in range(len(shape))])
    return np.broadcast_to(found, shape)


def iota(expr: Any, dtype: Any = "int32") -> Result:
    """An index at every place of its lattice, as a tile. It is loaded: the model has no engine that counts."""
    index = as_index(expr)
    if not index.axes:
        raise wrong("iota of a number; it takes an expression over index lattices")
    return load(current().constant(values(index, index.shape).astype(np.int32), "int32"))


def affine_select(pred: Any, on_true_tile: Any, on_false_value: Any) -> Result:
    """on_true_tile where a comparison of indices holds, else a number; on Vector, by a predicate that is loaded."""
    on_chip("affine_select", on_true_tile)
    shape = on_true_tile.shape
    if not isinstance(pred, Mask):
        return tensor_copy(on_true_tile) if pred else memset(shape, on_false_value, on_true_tile.tensor.dtype)
    holds = np.ones(shape, np.bool_)
    for test in pred.tests:
        holds &= values(test, shape) >= 0
    if holds.all():
        return tensor_copy(on_true_tile)
    if not holds.any():
        return memset(shape, on_false_value, on_true_tile.tensor.dtype)
    predicate, other = _predicate(holds), current().filled((shape[0], 1), "float32", float(on_false_value))

    def write(target: View, mask: Mask | None) -> None:
        views = {"result": target.fitted(shape), "predicate": predicate, "on_true": on_true_tile, "on_false": other}
        current().emit(Select, views, mask)

    return Result(shape, on_true_tile.tensor.dtype, "sbuf", write)


def _predicate(holds: NDArray[np.bool_]) -> View:
    """A tile of ones where `holds`; the same in all places where that is the same."""

    def make() -> View:
        trace = current()
        source = trace.constant(holds.astype(np.uint8), "uint8")
        found = trace.tensor(holds.shape, "uint8", "sbuf")
        trace.emit(DmaCopy, {"target": found, "source": source}, ring=trace.ring(False))
        return found

    return current().once(("predicate", holds.shape, holds.tobytes()), make)
