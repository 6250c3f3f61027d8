"""execute: what an instruction does to memory, once or for all iterations of the loops around it."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.deferred import Deferred
from tvm_neuron.isa.widen import as_float32
from tvm_neuron.native import FEW_ELEMS, assign, is_chained, native
from tvm_neuron.sim.access import Access
from tvm_neuron.sim.memory import Memory
from tvm_neuron.sim.statement import AnyTile, Axis, Operand, Statement

Array = NDArray[Any]
Values = dict[AnyTile, Array]


class Bound:
    """A statement in all iterations of `axes`, which start at `indices`, with what it reads and writes looked up."""

    __slots__ = ("axes", "defers", "is_fresh", "sources", "statement", "summed", "target")

    def __init__(self, statement: Statement, memory: Memory, indices: Sequence[int], axes: Sequence[Axis]) -> None:
        self.statement = statement
        self.axes = axes
        self.summed = tuple(place for place, axis in enumerate(axes) if axis.depth in statement.summed)
        self.is_fresh = statement.first is not None and not any(indices[loop] for loop in statement.first)
        self.sources = [_look_up(operand, statement, memory, indices, axes) for operand in statement.operands]
        self.target = None if statement.is_private else look(memory, statement.target, indices, axes)
        self.defers = self._may_defer()

    def run(self, values: Values) -> None:
        """Does what the instruction does to memory; private values are kept in `values`."""
        statement, instruction = self.statement, self.statement.instruction
        sources = [
            self._read(operand, found, values)
            for operand, found in zip(statement.operands, self.sources, strict=True)
        ]
        result: Any
        if statement.is_update:
            old = None if self.is_fresh else self._old(values)
            result = instruction.accumulate(old, self.summed, *_every_turn(sources, self.summed, self.axes))
        else:
            result = instruction.compute_for(statement.written, *sources)
        if self.target is None:
            values[statement.tile] = _kept(rounded(result, statement.target.dtype), statement, sources)
        elif isinstance(result, Deferred):
            result.write(self.target)
        elif statement.target.dtype.kind in "iu":
            self.target[...] = rounded(result, statement.target.dtype)
        else:  # rounds as `rounded` does, and spares a copy
            assign(self.target, result)

    def _read(self, operand: Operand, found: Array | None, values: Values) -> Any:
        """An array, or a Deferred that stands for one."""
        statement, lead = self.statement, len(self.axes)
        if found is None:
            assert operand.tile is not None and operand.access is not None  # noqa: PT018
            found = _padded(values[operand.tile], lead, len(operand.access.shape))
            found = _aligned(found, operand, statement, lead)
        if statement.raw or operand.tile is None:
            return found
        return Deferred(found) if self.defers and _is_large(found) else as_float32(found)

    def _may_defer(self) -> bool:
        """Whether there are large sources, which may be read while the target is written."""
        statement = self.statement
        if native() is None or statement.raw or not is_chained(statement.target.dtype):
            return False
        return any(found is None or _is_large(found) for found in self.sources) and statement.is_apart

    def _old(self, values: Values) -> Array:
        if self.target is None:
            statement = self.statement
            return _padded(values[statement.tile], len(self.axes), len(statement.target.shape))
        return self.target.astype(np.float32, copy=False)


def execute(statement: Statement, memory: Memory, indices: Sequence[int]) -> None:
    """Runs `statement` once, in the iteration `indices`."""
    Bound(statement, memory, indices, ()).run({})


def rounded(values: Any, dtype: np.dtype) -> Array:
    """Values in another dtype: to the nearest, ties to even; whole numbers saturate and take NaN as 0."""
    if isinstance(values, Deferred):
        values = values.values(dtype) if is_chained(dtype) else values.values()
    array: Array = values
    if array.dtype == dtype:
        return array
    if dtype.kind not in "iu":
        return array.astype(dtype)
    limits = np.iinfo(dtype)
    wide = np.rint(array.astype(np.float64))
    return np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf).clip(limits.min, limits.max).astype(dtype)


def look(memory: Memory, access: Access, indices: Sequence[int], axes: Sequence[Axis]) -> Array:
    """The bytes of `access` with one leading axis for each of `axes`, of size 1 where that doesn't move it."""
    steps = ((axis.count, access.step(axis.depth)) for axis in axes)
    lead = tuple((count, step) if step else (1, 0) for count, step in steps)
    return memory.view(access, access.address(indices), lead)


def _is_large(view: Array) -> bool:
    """Whether a pass over it is worth a call of the library."""
    return view.size >= FEW_ELEMS and is_chained(view.dtype)


def _look_up(
    operand: Operand, statement: Statement, memory: Memory, indices: Sequence[int], axes: Sequence[Axis]
) -> Array | None:
    """What the operand reads: an immediate or a view of memory; None where it is a private value."""
    if operand.tile is None or operand.access is None:
        return np.float32(operand.value)  # type: ignore[return-value]
    if operand.is_private:
        return None
    return _aligned(look(memory, operand.access, indices, axes), operand, statement, len(axes))


def _aligned(found: Array, operand: Operand, statement: Statement, lead: int) -> Array:
    """A scalar of each partition with the axes of what it meets: [P, 1] against [P, *free]."""
    if not operand.is_scalar:
        return found
    met = [each.access.shape for each in statement.operands if each.access and not each.is_scalar]
    rank = max(len(shape) for shape in (statement.target.shape, *met))  # the target may be the sum of what it meets
    return found.reshape(*found.shape[: lead + 1], *(1 for _ in range(rank - 1)))


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


def _kept(result: Array, statement: Statement, sources: Sequence[Any]) -> Array:
    """The private value: without the summed axes, and no window into memory that is written later."""
    rank = len(statement.target.shape)
    views = [source.source if isinstance(source, Deferred) else source for source in sources]
    if any(np.may_share_memory(view, result) for view in views if isinstance(view, np.ndarray)):
        result = result.copy()
    have = result.ndim - rank
    lead = (*(1,) * (len(statement.axes) - have), *result.shape[:have])
    assert prod(lead[len(statement.lead) :]) == 1
    return result.reshape(*lead[: len(statement.lead)], *result.shape[have:])
