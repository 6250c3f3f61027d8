"""What graphs and kernels mean: every block and kernel evaluated with NumPy in float64, by the book and by itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.kernel import (
    ACCUMULATOR,
    Contraction,
    Kernel,
    Operand,
    Product,
    Reduction,
    Scan,
    Statistics,
    Transposition,
)
from tvm_neuron.schedule.roles import scanned
from tvm_neuron.schedule.tensor import Tensor

Array = NDArray[Any]
Values = dict[Tensor, Array]

_OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "max": np.maximum, "min": np.minimum, "pow": lambda a, b: a**b,
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "select": np.where,
    "is_equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "is_gt": lambda a, b: a > b,
    "is_ge": lambda a, b: a >= b, "is_lt": lambda a, b: a < b, "is_le": lambda a, b: a <= b,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "cast.float32": lambda a: a * 1.0,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda a: a**-0.5, "tanh": np.tanh, "abs": abs,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "relu": lambda a: np.maximum(a, 0.0), "square": lambda a: a * a,
    "reciprocal": lambda a: 1 / a, "copy": lambda a: a,
}  # fmt: skip
_COMBINES: dict[str, Callable[..., Array]] = {"add": np.sum, "max": np.max, "min": np.min, "multiply": np.prod}


def run_graph(graph: Graph, inputs: Mapping[str, Array]) -> Values:
    """All tensors of the graph; every element must be written exactly once."""
    values = _inputs(graph.inputs, inputs)
    written: dict[Tensor, Array] = {}
    for block in graph.blocks:
        _run_block(block, values, written)
    _check_whole(written)
    return values


def run_kernels(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], graph: Graph, inputs: Mapping[str, Array]
) -> Values:
    """The same from kernels; `partition_of` says which dimension of its data a contraction sums over.

    A number may be filled in where other elements are then written, or the same number again. What a kernel adds to may
    be written before.
    """
    values = _inputs(graph.inputs, inputs)
    filled: dict[Tensor, Array] = {}
    written: dict[Tensor, Array] = {}
    for kernel in kernels:
        loads = (load for load in kernel.operand_loads() if load.tensor is kernel.out)
        is_update = any(linear_indices(load.indices) == kernel.out_maps for load in loads)
        times = {} if is_update else filled if isinstance(kernel.expr, Num) else written
        _run_kernel(kernel, partition_of, values, times)
    under = {t: np.where(written.get(t, 0), written.get(t, 0), np.minimum(times, 1)) for t, times in filled.items()}
    _check_whole(written | under)
    return values


def _inputs(tensors: Sequence[Tensor], inputs: Mapping[str, Array]) -> Values:
    return {tensor: np.asarray(inputs[tensor.name], np.float64) for tensor in tensors}


def _check_whole(written: dict[Tensor, Array]) -> None:
    for tensor, times in written.items():
        assert np.all(times == 1), f"{tensor}: elements are written {times.min()} to {times.max()} times"


def _grid(axes: Sequence[Axis]) -> dict[Axis, Array]:
    """The value of each axis as an array that broadcasts over all of them."""
    return {
        axis: np.arange(axis.extent).reshape([axis.extent if other is axis else 1 for other in axes]) for axis in axes
    }


def _value(expr: Expr, at: Mapping[Axis, Array], values: Values) -> Array:
    if isinstance(expr, Num):
        return np.asarray(expr.value)
    if isinstance(expr, Index):
        return at.get(expr.axis, np.asarray(0)) if expr.axis.extent == 1 else at[expr.axis]
    if isinstance(expr, Load):
        array = expr.tensor.value if expr.tensor.value is not None else values[expr.tensor]
        if expr.tensor is ACCUMULATOR:
            return array
        # A masked window may look outside, and is multiplied by zero there.
        index = [
            np.clip(_value(part, at, values), 0, extent - 1).astype(int)
            for part, extent in zip(expr.indices, array.shape, strict=True)
        ]
        found = array[tuple(np.broadcast_arrays(*index))] if index else array
        return np.asarray(found, np.float64) if np.asarray(found).dtype.kind == "f" else np.asarray(found)
    return _OPERATIONS[expr.op](*(_value(arg, at, values) for arg in expr.args))


def _run_block(block: Block, values: Values, written: dict[Tensor, Array]) -> None:
    order = [*block.spatial, *block.reduction]
    at = _grid(order)
    if recurrence := scanned(block):
        parts = (recurrence.factor, recurrence.term, recurrence.initial)
        result = _scan(parts, order, recurrence.along, recurrence.counted, values)
    else:
        result = np.broadcast_to(_value(block.expr, at, values), [axis.extent for axis in order])
    if block.combine and not recurrence:
        result = _COMBINES[block.combine](result, axis=tuple(range(len(block.spatial), len(order))))
        result = _OPERATIONS[block.combine](result, block.init)
    place = {axis: array[(..., *[0] * len(block.reduction))] for axis, array in at.items() if not axis.is_reduction}
    _store(block.output, [_value(part, place, values) for part in block.index], result, values, written)


def _scan(parts: Sequence[Expr], axes: Sequence[Axis], along: Axis, counted: Axis, values: Values) -> Array:
    """A recurrence of (factor, term, initial) over all axes but the one that counts it, the last of `axes`."""
    assert axes[-1] is counted
    at, extents = _grid(axes), [axis.extent for axis in axes]
    every = (np.broadcast_to(_value(part, at, values), extents) for part in parts)
    factor, term, initial = (array.take(0, axes.index(along)) for array in every)
    found, state = np.empty(factor.shape), initial[..., 0]
    for place in range(counted.extent):
        state = found[..., place] = factor[..., place] * state + term[..., place]
    return np.moveaxis(found, -1, axes.index(along))


def _run_kernel(
    kernel: Kernel, partition_of: Mapping[Tensor, int], values: Values, written: dict[Tensor, Array]
) -> None:
    outer = [kernel.channel, *kernel.free]
    at = _grid(outer)
    root = kernel.root
    if isinstance(root, Contraction):
        values[ACCUMULATOR] = _contract(kernel, root, partition_of[root.data], values)
    elif isinstance(root, Product):
        inside = _grid([*outer, root.depth, *root.steps])
        left, right = (_value(_load(part), inside, values) for part in (root.stationary, root.moving))
        shape = [axis.extent for axis in (*outer, root.depth, *root.steps)]
        summed = tuple(range(len(outer), len(shape)))
        values[ACCUMULATOR] = np.broadcast_to(left * right, shape).sum(axis=summed)
    elif isinstance(root, Transposition):
        found = _value(_load(root.source), at, values)
        values[ACCUMULATOR] = np.broadcast_to(found, [axis.extent for axis in outer])
    elif isinstance(root, Reduction):
        inside = _grid([*outer, *root.axes])
        found = np.broadcast_to(_value(root.load, inside, values), [a.extent for a in (*outer, *root.axes)])
        inner = tuple(range(len(outer), found.ndim))
        if isinstance(root, Scan):
            axes = (*outer, *root.axes)
            values[ACCUMULATOR] = _scan((root.factor, root.load, root.initial), axes, root.along, root.axes[0], values)
        elif isinstance(root, Statistics):
            values[ACCUMULATOR] = np.stack([found.mean(inner)[..., 0], found.var(inner)[..., 0]], -1)
        else:
            values[ACCUMULATOR] = _COMBINES[root.combine](found, axis=inner)
    result = np.broadcast_to(_value(kernel.expr, at, values), [axis.extent for axis in outer])
    place = [_value(part.expr(), at, values) for part in kernel.out_maps]
    _store(kernel.out, place, result, values, written)


def _load(operand: Operand) -> Load:
    return Load(operand.tensor, tuple(part.expr() for part in operand.maps))


def _contract(kernel: Kernel, root: Contraction, partition: int, values: Values) -> Array:
    weights = root.weights.astype(np.float64)
    total = np.zeros([kernel.channel.extent, *(axis.extent for axis in kernel.free)])
    at = _grid([*kernel.free, *root.steps])
    extents = [axis.extent for axis in (*kernel.free, *root.steps)]
    for k in range(weights.shape[0]):
        index = []
        for d, part in enumerate(root.maps):
            where = _value(part.expr(), at, values) + (k if d == partition else 0)
            index.append(np.broadcast_to(where, extents).astype(int))
        moving = values[root.data][tuple(index)].reshape([*extents[: len(kernel.free)], -1])
        columns = weights[k].reshape(-1, weights.shape[-1])
        total += np.moveaxis(_own_side(moving @ columns, kernel, root.side), -1, 0)
    return total


def _own_side(found: Array, kernel: Kernel, side: Axis | None) -> Array:
    """[*free, M] of [*free, side * N], N >= M: each value of the axis `side` takes the columns that are its own."""
    if side is None:
        return found
    at = kernel.free.index(side)
    parted = found.reshape([*found.shape[:-1], side.extent, -1])[..., : kernel.channel.extent]
    apart = np.moveaxis(parted, at, 0)
    return np.moveaxis(np.stack([apart[value, ..., value, :] for value in range(side.extent)]), 0, at)


def _store(tensor: Tensor, index: list[Array], result: Array, values: Values, written: dict[Tensor, Array]) -> None:
    array = values.setdefault(tensor, np.full(tensor.shape, np.nan))
    times = written.setdefault(tensor, np.zeros(tensor.shape, int))
    place = tuple(np.broadcast_to(part, result.shape) for part in index)
    array[place] = result
    np.add.at(times, place, 1)
