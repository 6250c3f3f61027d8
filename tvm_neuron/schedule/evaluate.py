"""evaluate: an expression over whole axes at once with NumPy: constants are folded, static indices enumerated."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tvm_neuron.errors import UnschedulableError
from tvm_neuron.isa.functions import ACTIVATION, ALU, BITWISE, REDUCE
from tvm_neuron.schedule.expr import INTEGER, Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear

Array = NDArray[Any]
Condition = tuple[Array, bool]
"""Truths on a grid, and which of them it takes for an element to count."""


def evaluate(expr: Expr, axes: Sequence[Axis], given: tuple[Condition, ...] = ()) -> Array:
    """The expression on the grid of `axes`: an array that broadcasts to their extents. All loads must be constant.

    A branch of a select may address elements outside of its tensor where the other one is taken.

    Raises:
        IndexError: an element that counts lies outside of its tensor.
    """
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
            return load_view(tensor.value, indices, axes, given)
        case Apply(op, (condition, on_true, on_false)) if op.removeprefix(INTEGER) == "select":
            truth = evaluate(condition, axes, given) != 0
            taken = _operand(on_true, axes, (*given, (truth, True)))
            return np.where(truth, taken, _operand(on_false, axes, (*given, (truth, False))))
        case Apply(op, args):
            return _apply(op, [_operand(arg, axes, given) for arg in args])
    raise AssertionError(expr)


def _operand(arg: Expr, axes: Sequence[Axis], given: tuple[Condition, ...]) -> Any:
    """Numbers stay Python's, so that they don't widen float32 positions as an array of float64 would."""
    return arg.value if isinstance(arg, Num) else evaluate(arg, axes, given)


def load_view(
    value: Array, indices: tuple[Expr, ...], axes: Sequence[Axis], given: tuple[Condition, ...] = ()
) -> Array:
    """`value[indices]` on the grid; a view without a copy where the indices are linear and never outside.

    Raises:
        IndexError: see `evaluate`.
    """
    maps = linear_indices(indices)
    if maps is not None and all(m.span[0] >= 0 and m.span[1] < n for m, n in zip(maps, value.shape, strict=True)):
        return _view(value, maps, axes)
    places = [evaluate(index, axes, given).astype(np.int64) for index in indices]
    for place, extent in zip(places, value.shape, strict=True):
        _check_inside(place, extent, given)
    if not value.size:
        return np.zeros((), value.dtype)  # none of it counts
    inside = [np.clip(place, 0, extent - 1) for place, extent in zip(places, value.shape, strict=True)]
    return value[tuple(np.broadcast_arrays(*inside))]


def _view(value: Array, maps: Sequence[Linear], axes: Sequence[Axis]) -> Array:
    corner = value[tuple(slice(m.const, None) for m in maps)] if maps else value
    strides = [sum(m.terms.get(axis, 0) * s for m, s in zip(maps, value.strides, strict=True)) for axis in axes]
    shape = [axis.extent if any(axis in m.terms for m in maps) else 1 for axis in axes]
    bits = corner.view(f"u{value.itemsize}")  # as_strided knows no float8
    return as_strided(bits, shape, strides, writeable=False).view(value.dtype)


def _check_inside(place: Array, extent: int, given: tuple[Condition, ...]) -> None:
    outside = (place < 0) | (place >= extent)
    for truth, wanted in given if outside.any() else ():
        outside = outside & (truth == wanted)
    if outside.any():
        found = np.broadcast_to(place, outside.shape)[outside][0]
        raise IndexError(f"it reads element {found} of a dimension that has {extent}")


def evaluate_blocks(blocks: Sequence[Block], dtype: str | None = None) -> Array:
    """What some blocks of constants write into their tensor, in its dtype or another. A lone move gives a view.

    Raises:
        UnschedulableError: a block reads what its operand does not have.
    """
    with np.errstate(all="ignore"):  # what has no finite value has the one of IEEE 754, as at run time
        return _written(blocks, dtype or blocks[0].output.dtype)


def _written(blocks: Sequence[Block], dtype: str) -> Array:
    output = blocks[0].output
    grids = [_grid(block) for block in blocks]
    if len(blocks) == 1 and grids[0].shape == output.shape and _is_plain(blocks[0]):
        return grids[0].astype(dtype, copy=False)
    into, is_missing = np.empty(output.shape, dtype), np.ones(output.shape, np.bool_)
    for block, grid in zip(blocks, grids, strict=True):
        places = np.broadcast_arrays(*(evaluate(part, block.spatial) for part in block.index))
        assert all(not place.size or place.min() >= 0 for place in places), f"{output} is written outside of it"
        into[tuple(places)] = grid.reshape(places[0].shape if places else ())
        is_missing[tuple(places)] = False
    assert not is_missing.any(), f"{output} is not written whole"
    return into


def _grid(block: Block) -> Array:
    order = [*block.spatial, *block.reduction]
    try:
        grid = np.broadcast_to(evaluate(block.expr, order), [axis.extent for axis in order])
    except IndexError as error:
        raise UnschedulableError(f"{block.origin}: {error}", block.origin.name, str(error)) from error
    return _combined(block, grid) if block.combine else grid


def _combined(block: Block, grid: Array) -> Array:
    axes = tuple(range(len(block.spatial), grid.ndim))
    if block.combine in ("add", "multiply"):
        exact = np.int64 if grid.dtype.kind in "biu" else np.float64
        return np.asarray(REDUCE[block.combine](grid, axis=axes, dtype=exact, initial=block.init))
    grid = grid.astype(np.uint8) if grid.dtype.kind == "b" else grid
    start: float = block.init
    if grid.dtype.kind in "iu":
        limits = np.iinfo(grid.dtype)
        start = min(max(start, int(limits.min)), int(limits.max))
    return np.asarray(REDUCE[block.combine](grid, axis=axes, initial=start))


def _is_plain(block: Block) -> bool:
    maps = linear_indices(block.index)
    return maps is not None and all(
        not m.const and (m.terms == {axis: 1} or axis.extent == 1) for m, axis in zip(maps, block.spatial, strict=False)
    )


_POSITIONS = {
    "floordiv": np.floor_divide, "floormod": np.mod, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "truncmod": np.fmod,
}  # fmt: skip


def _bits(args: list[Any]) -> list[Array]:
    """Whole numbers of at least 32 bits, as engines take them; numbers have the dtype of the others."""
    wide = [
        arg if arg.dtype.kind in "iu" and arg.itemsize >= 4 else arg.astype(np.int32)
        for arg in args
        if isinstance(arg, np.ndarray)
    ]
    dtype = np.result_type(*wide) if wide else np.dtype(np.int64)
    arrays = iter(wide)
    return [
        next(arrays) if isinstance(arg, np.ndarray) else np.asarray(int(arg), np.int64).astype(dtype) for arg in args
    ]


def _apply(op: str, args: list[Any]) -> Array:
    is_whole = op.startswith(INTEGER)
    op = op.removeprefix(INTEGER)
    if op == "copy":
        return np.asarray(args[0])
    if op == "and":
        return np.logical_and(args[0], args[1])
    if op == "or":
        return np.logical_or(args[0], args[1])
    if op == "not":
        return np.logical_not(args[0])
    if op.startswith("cast."):
        return np.asarray(args[0]).astype(op.removeprefix("cast."))
    if op in BITWISE:
        return np.asarray(BITWISE[op](*_bits(args)))
    if is_whole and op == "divide":
        return _quotient(*args)
    args = args if is_whole else [_computed(arg) for arg in args]
    if op in _POSITIONS:
        return np.asarray(_POSITIONS[op](*args))
    return np.asarray(ALU[op](*args) if op in ALU else ACTIVATION[op](*args))


def _computed(arg: Any) -> Any:
    """An operand as engines compute with it, in float32, unless it has more digits; a number is Python's.

    Differences of halves of 32 bits need 33: whole numbers have 64 then, and those of more bits are floats.
    """
    if not isinstance(arg, np.ndarray):
        return arg
    if arg.itemsize < 4:
        return arg.astype(np.float32)
    if arg.dtype.kind not in "iu":
        return arg
    is_long = arg.itemsize > 4 and bool((arg.astype(np.int64) + 2**32 >> 33).any())
    return arg.astype(np.float64 if is_long else np.int64)


def _quotient(left: Any, right: Any) -> Array:
    """Of whole numbers, towards zero."""
    down = np.floor_divide(left, right)
    return np.asarray(down + ((np.mod(left, right) != 0) & (down < 0)))
