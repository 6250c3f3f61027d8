"""Reductions over free axes."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tvm_neuron.isa import (
    BnAggr,
    BnStats,
    TensorReduce,
)
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.nki.calls.operands import on_chip
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.operators import REDUCTIONS, named
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace, current
from tvm_neuron.nki.view import ZERO, View


def tensor_reduce(op: Any, data: Any, axis: Any, negate: bool = False, keepdims: bool = False) -> Result:
    """op over free axes of data: [P, *N] without those axes, or with size 1 for them."""
    on_chip("tensor_reduce", data)
    given = list(axis) if isinstance(axis, Sequence) else [axis]
    if any(not hasattr(each, "__index__") or not -data.ndim <= each < data.ndim for each in given):
        raise wrong(f"tensor_reduce of {data} over axes {given}; it has axes 0 to {data.ndim - 1}")
    axes = {int(each) % data.ndim for each in given}
    if 0 in axes and data.axes[0][0][1]:
        raise wrong(f"tensor_reduce of {data} over axis 0, the partitions; it reduces free axes: transpose it first")
    kept = [at for at in range(data.ndim) if at not in axes]
    if current().dialect.reduces_last and axes and max(kept) > min(axes):
        raise wrong(
            f"tensor_reduce of {data} over axes {sorted(axes)}; they are the last ones: give another order to the tile "
            "(.ap), or reduce in two steps"
        )
    shape = tuple(data.shape[at] if at in kept else 1 for at in range(data.ndim) if keepdims or at in kept)
    name = named(op, REDUCTIONS, "a reduction")

    def write(target: View, mask: Mask | None) -> None:
        bounds = mask.bounds(data.ndim) if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        source = data.narrow(bounds).permuted([*kept, *sorted(axes)])
        cut = {place - len(kept): bounds[at - data.ndim] for place, at in enumerate(kept) if at - data.ndim in bounds}
        result = target.fitted(tuple(data.shape[at] for at in kept)).narrow(cut)
        _reduce(current(), result, source, f"negated_{name}" if negate else name, len(axes))

    return Result(shape, data.tensor.dtype, "sbuf", write)


def _reduce(trace: Trace, result: View, source: View, op: str, axes: int) -> None:
    """result[P, *A] = op over the last `axes` axes of source[P, *A, *B]."""
    last = source.axes[-axes:]
    joined = [last[0]]
    for step, count in last[1:]:
        before, have = joined[-1]
        if before == (0, 0, step[2] * count):
            joined[-1] = step, have * count
        else:
            joined.append((step, count))
    axes = len(joined)
    source = source.like(source.start, [*source.axes[: source.ndim - len(last)], *joined])
    wide = result.like(result.start, [*result.axes, *((ZERO, count) for _, count in joined)])
    if axes > MAX_FREE_DIMS:
        raise wrong(
            f"a reduction of {source} over {axes} axes; at most {MAX_FREE_DIMS} are possible: reduce in two steps"
        )
    trace.emit(partial(_reduction, op, axes), {"result": wide, "source": source}, kept=axes)


def _reduction(op: str, axes: int, result: Any, source: Any) -> TensorReduce:
    import dataclasses

    dims = result.dims[:-axes] or ((1, 1),)
    return TensorReduce(dataclasses.replace(result, dims=dims), source, op, axes)


def bn_stats(data: Any) -> Result:
    """[P, 6]: count, mean and variance * count of the even elements of data [P, N], then of the odd ones."""
    on_chip("bn_stats", data)
    return Result(
        (data.shape[0], 6), "float32", "sbuf",
        lambda target, mask: current().row(BnStats, [target], data, mask=mask, is_cut=True),
    )  # fmt: skip


def bn_aggr(data: Any) -> Result:
    """[P, 2]: mean and variance of what threes of (count, mean, variance * count) tell."""
    on_chip("bn_aggr", data)
    return Result(
        (data.shape[0], 2), "float32", "sbuf", lambda target, mask: current().row(BnAggr, [target], data, mask=mask)
    )
