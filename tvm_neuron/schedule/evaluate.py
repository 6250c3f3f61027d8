"""evaluate: an expression over whole axes at once with NumPy: constants are folded, static indices enumerated."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tvm_neuron.isa.functions import ACTIVATION, ALU, BITWISE, REDUCE
from tvm_neuron.schedule.expr import INTEGER, Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, linear_indices

Array = NDArray[Any]


def evaluate(expr: Expr, axes: Sequence[Axis]) -> Array:
    """The expression on the grid of `axes`: an array that broadcasts to their extents. All loads must be constant."""
    match expr:
        case Num(value):
            return np.asarray(value)
        case Index(axis):
            if axis not in axes:
                return np.asarray(0)  # an axis of extent 1 that was dropped
            shape = [axis.extent if other is axis else 1 for other in axes]
            return np.arange(axis.extent).reshape(shape)
        case Load(tensor, indices):
            assert tensor.value is not None, f"{tensor.name} is not known at compile time"
            return load_view(tensor.value, indices, axes)
        case Apply(op, args):
            # numbers stay Python's, so that they don't widen float32 positions as an array of float64 would
            return _apply(op, [arg.value if isinstance(arg, Num) else evaluate(arg, axes) for arg in args])
    raise AssertionError(expr)


def load_view(value: Array, indices: tuple[Expr, ...], axes: Sequence[Axis]) -> Array:
    """`value[indices]` on the grid; a view without a copy where the indices are linear."""
    maps = linear_indices(indices)
    if maps is None:
        return value[tuple(np.broadcast_arrays(*(evaluate(index, axes) for index in indices)))]
    corner = value[tuple(slice(m.const, None) for m in maps)] if maps else value
    strides = [sum(m.terms.get(axis, 0) * s for m, s in zip(maps, value.strides, strict=True)) for axis in axes]
    shape = [axis.extent if any(axis in m.terms for m in maps) else 1 for axis in axes]
    return as_strided(corner, shape, strides, writeable=False)


def evaluate_blocks(blocks: Sequence[Block]) -> Array:
    """The tensor that some blocks of constants write. A lone move gives a view of its source."""
    output = blocks[0].output
    grids = [_grid(block) for block in blocks]
    if len(blocks) == 1 and grids[0].shape == output.shape and grids[0].dtype == output.dtype and _is_plain(blocks[0]):
        return grids[0]
    into = np.empty(output.shape, output.dtype)
    for block, grid in zip(blocks, grids, strict=True):
        target = _target_view(into, block)
        if target is not None:
            target[...] = grid
        else:
            into[tuple(np.broadcast_arrays(*(evaluate(part, block.spatial) for part in block.index)))] = grid
    return into


def _grid(block: Block) -> Array:
    order = [*block.spatial, *block.reduction]
    grid = np.broadcast_to(evaluate(block.expr, order), [axis.extent for axis in order])
    if not block.combine:
        return grid
    grid = REDUCE[block.combine](grid, axis=tuple(range(len(block.spatial), len(order))))
    return ALU[block.combine](grid, np.asarray(block.init, grid.dtype))


def _is_plain(block: Block) -> bool:
    maps = linear_indices(block.index)
    return maps is not None and all(
        not m.const and (m.terms == {axis: 1} or axis.extent == 1) for m, axis in zip(maps, block.spatial, strict=False)
    )


def _target_view(into: Array, block: Block) -> Array | None:
    maps = linear_indices(block.index)
    if maps is None:
        return None
    corner = into[tuple(slice(m.const, None) for m in maps)] if maps else into
    strides = [sum(m.terms.get(axis, 0) * s for m, s in zip(maps, into.strides, strict=True)) for axis in block.spatial]
    return as_strided(corner, [axis.extent for axis in block.spatial], strides)


_POSITIONS = {
    "floordiv": np.floor_divide, "floormod": np.mod, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "truncmod": np.fmod,
}  # fmt: skip


def _bits(value: Any) -> Any:
    """A whole number of at least 32 bits, as engines take it; a number is Python's, which any dtype takes."""
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "iu" and value.itemsize >= 4 else value.astype(np.int32)
    return int(value)


def _apply(op: str, args: list[Any]) -> Array:
    op = op.removeprefix(INTEGER)
    if op == "copy":
        return np.asarray(args[0])
    if op == "select":
        return np.where(args[0], args[1], args[2])
    if op == "and":
        return np.logical_and(args[0], args[1])
    if op == "or":
        return np.logical_or(args[0], args[1])
    if op == "not":
        return np.logical_not(args[0])
    if op.startswith("cast."):
        return np.asarray(args[0]).astype(op.removeprefix("cast."))
    if op in BITWISE:
        return np.asarray(BITWISE[op](*map(_bits, args)))
    if op in _POSITIONS:
        return np.asarray(_POSITIONS[op](*args))
    return np.asarray(ALU[op](*args) if op in ALU else ACTIVATION[op](*args))
