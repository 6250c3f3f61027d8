"""restrict: a kernel over a part of one of its axes, on tensors of which only some rows are held."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Contraction, Gather, Kernel, Operand, Product, Reduction, Transposition
from tvm_neuron.schedule.linear import Linear, linear
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Rows:
    """A tensor that holds the rows of another one from `low` on, along dimension `dim`."""

    tensor: Tensor
    dim: int
    low: int


def restrict(kernel: Kernel, axis: Axis | None, low: int, high: int, places: Mapping[Tensor, Rows]) -> Kernel:
    """The kernel over [low, high) of `axis` (all of it without one), with `places` instead of tensors."""
    part = Axis(axis.name, high - low) if axis is not None else None

    def cut(found: Linear) -> Linear:
        if axis is None or part is None:
            return found
        return found.replaced(axis, Linear(low, {part: 1} if part.extent > 1 else {}))

    def placed(tensor: Tensor, maps: tuple[Linear, ...]) -> tuple[Tensor, tuple[Linear, ...]]:
        moved = tuple(map(cut, maps))
        there = places.get(tensor)
        if there is None:
            return tensor, moved
        return there.tensor, tuple(m + Linear(-there.low) if d == there.dim else m for d, m in enumerate(moved))

    def leaf(found: Num | Index | Load) -> Expr:
        if not isinstance(found, Load) or found is ROOT:
            return found
        if found.tensor.value is not None:
            if axis is None:
                return found
            return Load(found.tensor, tuple(_cut_index(index, axis, cut) for index in found.indices))
        tensor, maps = placed(found.tensor, linear_indices(found.indices) or ())
        return Load(tensor, tuple(m.expr() for m in maps))

    def operand(found: Operand) -> Operand:
        return Operand(*placed(found.tensor, found.maps))

    root = kernel.root
    if isinstance(root, Contraction):
        data, maps = placed(root.data, root.maps)
        root = replace(root, data=data, maps=maps, scale=operand(root.scale) if root.scale else None)
    elif isinstance(root, Product):
        root = replace(root, stationary=operand(root.stationary), moving=operand(root.moving))
    elif isinstance(root, Transposition):
        row = part if part is not None and root.row is axis else root.row
        root = replace(root, source=operand(root.source), row=row)
    elif isinstance(root, Reduction):
        root = root.reading(leaf)
    elif isinstance(root, Gather):
        assert root.data.tensor not in places, f"{root.data.tensor} is looked up at positions that may lie in any part"
        root = replace(root, data=operand(root.data), positions=operand(root.positions))
    out, out_maps = placed(kernel.out, kernel.out_maps)
    free = tuple(part if a is axis and part is not None else a for a in kernel.free)
    rows = {root.row} if isinstance(root, Transposition) else set()
    free = tuple(a for a in free if a.extent > 1 or a in rows)
    channel = part if part is not None and kernel.channel is axis else kernel.channel
    expr = rewrite(kernel.expr, leaf)
    return replace(kernel, out=out, out_maps=out_maps, channel=channel, free=free, expr=expr, root=root)


def _cut_index(index: Expr, axis: Axis, cut: Callable[[Linear], Linear]) -> Expr:
    found = linear(index)
    return cut(found).expr() if axis in found.terms else index
