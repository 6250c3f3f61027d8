"""separate: some reads of a block as moves into tensors of their own, which the block then reads in order."""

from collections.abc import Callable

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor


def separate(block: Block, is_wanted: Callable[[Load], bool]) -> tuple[list[Block], list[Block]]:
    """The wanted reads of a block as moves, and what then reads their results; a move stays as it is."""
    if isinstance(block.expr, Load) and not block.combine:
        return [block], []
    found: dict[Load, Block] = {}
    for load in block.loads():
        if is_wanted(load) and load not in found:
            found[load] = _move(block, load)

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part not in found:
            return part
        return Load(found[part].output, tuple(Index(axis) for axis in _axes(part)) or (Num(0),))

    return list(found.values()), [block.with_expr(rewrite(block.expr, leaf))]


def _move(block: Block, load: Load) -> Block:
    old = _axes(load)
    axes = tuple(Axis(axis.name, axis.extent) for axis in old)
    by: dict[Axis, Expr] = {axis: Index(new) for axis, new in zip(old, axes, strict=True)}
    gathered = Tensor(f"{load.tensor.name}.gathered", tuple(a.extent for a in axes) or (1,), load.tensor.dtype)
    index = tuple(Index(axis) for axis in axes) or (Num(0),)
    return Block(block.origin, axes, gathered, index, replace_axes(load, by))


def _axes(load: Load) -> tuple[Axis, ...]:
    return tuple(dict.fromkeys(axis for axis in axes_of(load) if axis.extent > 1))
