"""separate_gathers: reads at positions known at run time only, in steps that a DMA with computed addresses can do.

The positions become a tensor of whole numbers, negative ones counted from the end. What float32 rounds of them lies
far outside, and stays there, so that every index outside is found when the program runs. The data lie in DRAM.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tvm_neuron.codegen.integers import EXACT_TO
from tvm_neuron.codegen.passes.moves import can_invert, inverse, moved_load
from tvm_neuron.codegen.passes.separate import separate
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import (
    GATHER,
    Apply,
    Axis,
    Expr,
    Index,
    Load,
    Num,
    axes_of,
    every_load,
    replace_axes,
    rewrite,
)
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor

_FAR = 2.0**30  # beyond all that other indices can add


def separate_gathers(graph: Graph, device: Device) -> None:
    """Replaces each such read by a block of its positions and one that gathers.

    Raises:
        UnschedulableError: the device has no computed addresses, or the positions are computed in another way.
    """
    for block in graph.blocks:
        if any(map(_is_computed, block.loads())):
            if not device.dma_indirect_ns:
                reason = f"its positions are known at run time only; the DMA of {device.name} has no computed addresses"
                raise _unschedulable(block, reason)
            moves, rest = separate(block.with_expr(_read_through(graph, block.expr)), _is_computed)
            is_whole = not rest and len(graph.writers(block.output)) == 1
            graph.replace(block, *(piece for move in moves for piece in _gather(move, is_whole)), *rest)


def _read_through(graph: Graph, expr: Expr) -> Expr:
    """The expression with positions that are repeated read where they come from: they choose whole rows then.

    `gather` of frameworks repeats them along rows.
    """

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load):
            return part
        return Load(part.tensor, tuple(rewrite(index, repeated) for index in part.indices))

    def position(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor.kind != "temp":
            return part
        writers = graph.writers(part.tensor)
        load = moved_load(writers[0]) if len(writers) == 1 and can_invert(writers[0]) else None
        if load is None or load.tensor.dtype != part.tensor.dtype:
            return part
        by = inverse(writers[0], part.indices)
        return position(Load(load.tensor, tuple(replace_axes(index, by) for index in load.indices)))

    def repeated(part: Num | Index | Load) -> Expr:
        found = position(part)
        return found if len(_axes([found])) < len(_axes([part])) else part

    return rewrite(expr, leaf)


def _unschedulable(block: Block, reason: str) -> UnschedulableError:
    return UnschedulableError(f"{block.origin}: {reason}", block.origin.name, reason)


def _is_computed(load: Load) -> bool:
    return any(part.tensor.value is None for index in load.indices for part in every_load(index))


@dataclass(frozen=True)
class _Choice:
    """The dimensions of the data, one behind the other, in which positions choose, and those positions."""

    first: int
    extents: tuple[int, ...]
    indices: tuple[Expr, ...]


@dataclass(frozen=True)
class _Data:
    """What is chosen from, at 0 of the dimensions in which positions choose, and these."""

    load: Load
    dims: tuple[int, ...]


def _gather(move: Block, may_write: bool) -> list[Block]:
    """The blocks in the place of a move from computed positions; `may_write`: the last may write what the move did."""
    load = move.expr
    assert isinstance(load, Load)
    choice = _choice(move, load)
    *parts, positions = _positions(move, choice)
    data, blocks = _in_dram(move, load, choice)
    at = tuple(Index(axis) for axis in _axes(choice.indices)) or (Num(0),)
    expr = Apply(f"{GATHER}{'.'.join(map(str, data.dims))}", (data.load, Load(positions.output, at)))
    maps = linear_indices(move.index) or ()
    if may_write and any(set(part.terms) & set(_axes(choice.indices)) or not part.terms for part in maps):
        return [*parts, positions, *blocks, move.with_expr(expr)]
    axes = tuple(axis for axis in move.axes if axis.extent > 1)  # behind a dimension that may lie on the partitions
    rows = Tensor(f"{move.output.name}.rows", (1, *(axis.extent for axis in axes)), move.output.dtype)
    there: tuple[Expr, ...] = (Num(0), *(Index(axis) for axis in axes))
    return [*parts, positions, *blocks, Block(move.origin, axes, rows, there, expr), move.with_expr(Load(rows, there))]


def _choice(move: Block, load: Load) -> _Choice:
    dims = [d for d, index in enumerate(load.indices) if any(True for _ in every_load(index))]
    if dims != list(range(dims[0], dims[0] + len(dims))):
        raise _unschedulable(move, "its positions choose in dimensions that are not beside each other")
    extents = tuple(load.tensor.shape[d] for d in dims)
    if prod(extents) > EXACT_TO:
        raise _unschedulable(move, f"it chooses from {prod(extents)} positions; engines compute up to 2^24 exactly")
    return _Choice(dims[0], extents, tuple(load.indices[d] for d in dims))


def _axes(indices: Sequence[Expr]) -> tuple[Axis, ...]:
    return tuple(dict.fromkeys(axis for index in indices for axis in axes_of(index) if axis.extent > 1))


def _positions(move: Block, choice: _Choice) -> list[Block]:
    """The blocks that make the positions, the last of them all; of several indices one outside makes it negative."""
    found = [_counted(move, i, extent) for i, extent in zip(choice.indices, choice.extents, strict=True)]
    old = _axes(choice.indices)
    axes = tuple(Axis(axis.name, axis.extent) for axis in old)
    shape, at = tuple(axis.extent for axis in axes) or (1,), tuple(Index(axis) for axis in axes) or (Num(0),)
    by: dict[Axis, Expr] = {axis: Index(new) for axis, new in zip(old, axes, strict=True)}
    name = f"{move.output.name}.positions"
    if len(found) == 1:
        return [Block(move.origin, axes, Tensor(name, shape, "int32"), at, replace_axes(found[0], by))]
    blocks: list[Block] = []
    total: Expr = Num(0.0)
    for number, (part, extent) in enumerate(zip(found, choice.extents, strict=True)):
        nearest = Apply("min", (Apply("max", (part, Num(0.0))), Num(extent - 1.0)))
        checked = Apply("select", (Apply("is_equal", (part, nearest)), part, Num(-_FAR)))
        index = Tensor(f"{name}.{number}", shape, "int32")
        blocks.append(Block(move.origin, axes, index, at, replace_axes(checked, by)))
        step = prod(choice.extents[number + 1 :])
        term = Apply("multiply", (Load(index, at), Num(step)))
        total = Apply("add", (total, term)) if number else term
    total = Apply("max", (total, Num(-1.0)))
    return [*blocks, Block(move.origin, axes, Tensor(name, shape, "int32"), at, total)]


def from_start(index: Expr, extent: int) -> Expr:
    """An index counted from the start of its dimension."""
    return Apply("add", (index, Apply("multiply", (Apply("is_lt", (index, Num(0.0))), Num(extent)))))


def _counted(move: Block, index: Expr, extent: int) -> Expr:
    """So, if it is one; limits keep others within."""
    match index:
        case Load():
            return from_start(index, extent)
        case Apply("min" | "max", args) if all(isinstance(arg, Num | Load) or _is_clip(arg) for arg in args):
            return index
    raise _unschedulable(move, "it computes its positions from data by more than limits")


def _is_clip(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.op in ("min", "max") and all(isinstance(a, Num | Load) for a in expr.args)


def _in_dram(move: Block, load: Load, choice: _Choice) -> tuple[_Data, list[Block]]:
    """The data in DRAM. A tensor of the core is copied there, with the dimensions as one."""
    data, end = load.tensor, choice.first + len(choice.extents)
    dims = tuple(range(choice.first, end))
    if data.value is not None or data.kind == "input":
        indices = tuple(Num(0) if d in dims else index for d, index in enumerate(load.indices))
        return _Data(Load(data, indices), dims), []
    shape = (*data.shape[: choice.first], prod(choice.extents), *data.shape[end:])
    copy = Tensor(f"{data.name}.rows", shape, data.dtype, "scratch")
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(data.shape))
    at: Expr = Num(0)
    for axis in axes[choice.first : end]:
        at = Apply("add", (Apply("multiply", (at, Num(axis.extent))), Index(axis)))
    index = (*map(Index, axes[: choice.first]), at, *map(Index, axes[end:]))
    block = Block(move.origin, axes, copy, index, Load(data, tuple(map(Index, axes))))
    indices = (*load.indices[: choice.first], Num(0), *load.indices[end:])
    return _Data(Load(copy, indices), dims[:1]), [block]
