"""Calls whose operand is a pattern over the indices of a tile, on GpSimd."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from tvm_neuron.isa import AffineSelect, Iota
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.nki.calls.operands import number, on_chip
from tvm_neuron.nki.calls.pointwise import in_sbuf, memset, tensor_copy
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Index, Mask, as_index
from tvm_neuron.nki.operators import TESTS, named
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View


def iota(expr: Any, dtype: Any = "int32") -> Result:
    """An index at every place of its lattice, as a tile."""
    index = as_index(expr)
    if not index.axes:
        raise wrong("iota of a number; it takes an expression over index lattices")
    return _counted(index, "int32")


def iota_into(dst: View, pattern: Sequence[Sequence[int]], offset: int = 0, channel_multiplier: int = 0) -> Result:
    """offset + p * channel_multiplier + the sum of step * index over `pattern`: (step, count) of each axis."""
    return _counted(_index(dst, pattern, offset, channel_multiplier), dst.tensor.dtype)


def affine_select(pred: Any, on_true_tile: Any, on_false_value: Any) -> Result:
    """on_true_tile where comparisons of indices hold, else a number: an instruction for each of them."""
    on_chip("affine_select", on_true_tile)
    shape, dtype = on_true_tile.shape, on_true_tile.tensor.dtype
    if not isinstance(pred, Mask):
        return tensor_copy(on_true_tile) if pred else memset(shape, on_false_value, dtype)
    return _selected([(test, "is_ge") for test in pred.tests], on_true_tile, on_false_value)


def affine_select_into(
    dst: View,
    pattern: Sequence[Sequence[int]],
    channel_multiplier: int,
    on_true_tile: View,
    on_false_value: Any,
    cmp_op: Any = "equal",
    offset: int = 0,
) -> Result:
    """on_true_tile where the affine value, as of `iota`, compares to 0, else a number."""
    on_chip("affine_select", on_true_tile)
    test = _index(dst, pattern, offset, channel_multiplier)
    return _selected([(test, named(cmp_op, TESTS, "affine_select"))], on_true_tile, on_false_value)


def _index(dst: View, pattern: Sequence[Sequence[int]], offset: int, channel_multiplier: int) -> Index:
    axes = tuple((int(step), int(count)) for step, count in pattern)
    if len(axes) > MAX_FREE_DIMS:
        raise wrong(f"a pattern of {[list(axis) for axis in axes]}; it has at most {MAX_FREE_DIMS} axes")
    if prod(count for _, count in axes) != prod(dst.shape[1:]):
        raise wrong(f"a pattern of {[list(axis) for axis in axes]} for {dst}; its counts are those of the free axes")
    return Index(int(offset), ((int(channel_multiplier), dst.shape[0]), *axes))


def _counted(index: Index, dtype: str) -> Result:
    def write(target: View, mask: Mask | None) -> None:
        _emit(Iota, index, {"result": target.fitted(index.shape)}, mask)

    return Result(index.shape, dtype, "sbuf", write)


def _selected(tests: Sequence[tuple[Index, str]], data: View, other: Any) -> Result:
    source = in_sbuf(data)  # which GpSimd reads alone

    def write(target: View, mask: Mask | None) -> None:
        for at, (index, test) in enumerate(tests):
            shape = index.shape if len(index.shape) > data.ndim else data.shape
            result = target.fitted(shape)
            views = {"result": result, "source": result if at else source.fitted(shape)}
            _emit(AffineSelect, index, views, mask, other=number("on_false_value of affine_select", other), test=test)

    return Result(data.shape, data.tensor.dtype, "sbuf", write)


def _emit(build: Any, index: Index, views: dict[str, View], mask: Mask | None, **fixed: Any) -> None:
    """One instruction whose pattern is `index`, over what `mask` leaves of the views."""
    shape = views["result"].shape
    bounds = mask.bounds(len(shape)) if mask is not None else {}
    steps = [0] * (len(shape) - len(index.axes)) + [step if count > 1 else 0 for step, count in index.axes]
    start = index.start + sum(steps[axis] * low for axis, (low, _) in bounds.items())
    cut = {name: view.narrow(bounds) for name, view in views.items()}
    trace = current()
    before = len(trace.groups[-1])
    trace.emit(partial(build, pattern=(start, *steps)), cut, kept=len(shape) - 1, **fixed)
    if len(trace.groups[-1]) > before + 1:
        raise wrong(f"{views['result']} takes several instructions; a pattern of indices is that of one")
