"""execute: what an instruction does to memory, once or for all iterations of the loops around it."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.widen import as_float32
from tvm_neuron.native import assign
from tvm_neuron.sim.access import Access
from tvm_neuron.sim.memory import Memory
from tvm_neuron.sim.statement import AnyTile, Axis, Operand, Statement

Array = NDArray[Any]
Values = dict[AnyTile, Array]


def execute(statement: Statement, memory: Memory, indices: Sequence[int], axes: Sequence[Axis], values: Values) -> None:
    """Runs `statement` for all iterations of `axes`, which start at `indices`; private values are kept in `values`."""
    instruction = statement.instruction
    sources = [_read(operand, statement, memory, indices, axes, values) for operand in statement.operands]
    if statement.is_update:
        fresh = statement.first is not None and not any(indices[loop] for loop in statement.first)
        old = None if fresh else _old(statement, memory, indices, axes, values)
        summed = tuple(place for place, axis in enumerate(axes) if axis.depth in statement.summed)
        result = instruction.accumulate(old, summed, *_every_turn(sources, summed, axes))
    else:
        result = instruction.compute(*sources)
    if statement.is_private:
        values[statement.tile] = _kept(rounded(result, statement.target.dtype), statement, sources)
    elif statement.target.dtype.kind in "iu":
        look(memory, statement.target, indices, axes)[...] = rounded(result, statement.target.dtype)
    else:  # rounds as `rounded` does, and spares a copy
        assign(look(memory, statement.target, indices, axes), result)


def rounded(values: Array, dtype: np.dtype) -> Array:
    """Values in another dtype: to the nearest, ties to even; whole numbers saturate and take NaN as 0."""
    if values.dtype == dtype:
        return values
    if dtype.kind not in "iu":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    wide = np.rint(values.astype(np.float64))
    return np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf).clip(limits.min, limits.max).astype(dtype)


def look(memory: Memory, access: Access, indices: Sequence[int], axes: Sequence[Axis]) -> Array:
    """The bytes of `access` with one leading axis for each of `axes`, of size 1 where that doesn't move it."""
    steps = ((axis.count, access.step(axis.depth)) for axis in axes)
    lead = tuple((count, step) if step else (1, 0) for count, step in steps)
    return memory.view(access, access.address(indices), lead)


def _read(
    operand: Operand, statement: Statement, memory: Memory, indices: Sequence[int], axes: Sequence[Axis], values: Values
) -> Array:
    if operand.tile is None or operand.access is None:
        return np.float32(operand.value)  # type: ignore[return-value]
    if operand.is_private:
        found = _padded(values[operand.tile], len(axes), len(operand.access.shape))
    else:
        found = look(memory, operand.access, indices, axes)
    if not statement.raw:
        found = as_float32(found)
    if operand.is_scalar:  # [P, 1] against [P, *free]
        found = found.reshape(*found.shape[: len(axes) + 1], *(1 for _ in statement.target.shape[1:]))
    return found


def _old(statement: Statement, memory: Memory, indices: Sequence[int], axes: Sequence[Axis], values: Values) -> Array:
    if statement.is_private:
        return _padded(values[statement.tile], len(axes), len(statement.target.shape))
    return look(memory, statement.target, indices, axes).astype(np.float32, copy=False)


def _padded(value: Array, lead: int, rank: int) -> Array:
    """`value` with axes of size 1 for the loops that are only around the reader."""
    have = value.ndim - rank
    return value.reshape(*value.shape[:have], *(1,) * (lead - have), *value.shape[have:])


def _every_turn(sources: list[Array], summed: tuple[int, ...], axes: Sequence[Axis]) -> list[Array]:
    """The sources, the first one repeated over summed loops that move none of them: each turn adds once more."""
    for place in summed:
        if all(source.shape[place] == 1 for source in sources):
            shape = list(sources[0].shape)
            shape[place] = axes[place].count
            sources[0] = np.broadcast_to(sources[0], shape)
    return sources


def _kept(result: Array, statement: Statement, sources: Sequence[Array]) -> Array:
    """The private value: without the summed axes, and no window into memory that is written later."""
    rank = len(statement.target.shape)
    if any(np.may_share_memory(source, result) for source in sources if isinstance(source, np.ndarray)):
        result = result.copy()
    have = result.ndim - rank
    lead = (*(1,) * (len(statement.axes) - have), *result.shape[:have])
    assert prod(lead[len(statement.lead) :]) == 1
    return result.reshape(*lead[: len(statement.lead)], *result.shape[have:])
