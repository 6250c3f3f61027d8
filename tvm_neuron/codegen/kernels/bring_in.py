"""bring_in: lays a window's rows of a tensor out on partitions, by DMA straight from where the tensor comes from.

A padded tensor is not made in DRAM for that: its border is written where the rows lie, its middle is brought there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm_neuron.codegen.kernels.bounce import permutes_partitions
from tvm_neuron.schedule.expr import Axis, Expr, Load, Num
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Source:
    """Where a tensor's elements come from: `tensor[x + shift]` for low <= x < high in each dimension, else `fill`."""

    tensor: Tensor
    shift: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    fill: Expr | None
    made_by: tuple[Kernel, ...]  # what is no longer needed


def source_of(data: Tensor, kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> Source | None:
    """The source of what DMA brings from DRAM, perhaps padded with one number; None for anything else.

    That is an input, or a temporary that only one kernel reads and that goes through DRAM since it lies otherwise on
    the partitions.
    """
    if data.kind == "input":
        return Source(data, (0,) * len(data.shape), (0,) * len(data.shape), data.shape, None, ())
    writers = tuple(kernel for kernel in kernels if kernel.out is data)
    if sum(data in kernel.sources() for kernel in kernels) != 1:
        return None
    moves = [kernel for kernel in writers if kernel.by_dma]
    fills = {kernel.expr for kernel in writers if not kernel.by_dma}
    if len(moves) != 1 or len(fills) > 1 or not all(isinstance(expr, Num) for expr in fills):
        return None
    (move,) = moves
    assert isinstance(move.expr, Load)
    maps = linear_indices(move.expr.indices)
    if maps is None or [m.terms for m in maps] != [m.terms for m in move.out_maps]:
        return None
    tensor = move.expr.tensor
    is_bounced = tensor.kind == "temp" and permutes_partitions(move, move.expr, partition_of)
    if tensor.kind != "input" and not is_bounced:
        return None
    if any(len(m.terms) > 1 or set(m.terms.values()) - {1} for m in maps):
        return None
    shift = tuple(m.const - o.const for m, o in zip(maps, move.out_maps, strict=True))
    low = tuple(o.const for o in move.out_maps)
    high = tuple(o.span[1] + 1 for o in move.out_maps)
    return Source(tensor, shift, low, high, fills.pop() if fills else None, writers)


def bring_in(
    source: Source, packed: Tensor, like: Kernel, part: int, dim: int, rows: Sequence[Linear]
) -> list[Kernel] | None:
    """The kernels that lay `packed` out: its channel `depth * w + c` is channel c, moved along `dim` to `rows[w]`.

    `rows[w]` gives the place in the padded tensor over one axis, that of `packed`'s dimension. None where channels are
    padded, which partitions can't be.
    """
    depth = packed.shape[part] // len(rows)
    if source.low[part] or source.high[part] != depth:
        return None
    inside = [(source.low[d], source.high[d]) for d in range(len(packed.shape))]
    valid = [_valid(row, *inside[dim], packed.shape[dim]) for row in rows]
    found: list[Kernel] = []
    if source.fill is not None:
        start = max(low for low, _ in valid)
        inside[dim] = start, max(start, min(high for _, high in valid))
        found += [fill(packed, like, part, box, source.fill) for box in border(packed.shape, part, inside)]
    for w, (row, (low, high)) in enumerate(zip(rows, valid, strict=True)):
        if high == low:
            continue  # all of it lies in the padding
        axes = [Axis(f"d{d}", end - start) for d, (start, end) in enumerate(inside)]
        axes[part], axes[dim] = Axis("c", depth), Axis("r", high - low)
        starts = [start for start, _ in inside]
        starts[part], starts[dim] = depth * w, low
        out = tuple(Linear(at, _one(axis)) for at, axis in zip(starts, axes, strict=True))
        read = [Linear(at + by, _one(axis)) for at, by, axis in zip(starts, source.shift, axes, strict=True)]
        read[part] = Linear(source.shift[part], _one(axes[part]))
        ((_, step),) = row.terms.items()
        read[dim] = Linear(row.const + step * low + source.shift[dim], {axes[dim]: step} if high - low > 1 else {})
        found.append(_move(packed, like, part, axes, out, Load(source.tensor, tuple(m.expr() for m in read))))
    return found


def _one(axis: Axis) -> dict[Axis, int]:
    return {axis: 1} if axis.extent > 1 else {}


def _valid(row: Linear, low: int, high: int, extent: int) -> tuple[int, int]:
    """The values of the axis of `row` at which it is within [low, high)."""
    ((_, step),) = row.terms.items()
    start = min(extent, max(0, -(-(low - row.const) // step)))
    return start, max(start, min(extent, (high - 1 - row.const) // step + 1))


def border(shape: Sequence[int], part: int, inside: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Boxes that together cover what is outside of the box `inside`, which may be empty."""
    found = []
    box = [(0, extent) for extent in shape]
    for d, (low, high) in enumerate(inside):
        if d == part:
            continue
        around = ([*box[:d], side, *box[d + 1 :]] for side in ((0, low), (high, shape[d])))
        found += [piece for piece in around if all(end > start for start, end in piece)]
        box[d] = (low, high)
    return found


def fill(packed: Tensor, like: Kernel, part: int, box: Sequence[tuple[int, int]], value: Expr) -> Kernel:
    """The kernel that writes a number into a box of a tensor, which is not empty."""
    assert all(end > start for start, end in box), f"nothing of {packed} lies in {box}"
    axes = [Axis(f"d{d}", end - start) for d, (start, end) in enumerate(box)]
    out = tuple(Linear(start, _one(axis)) for (start, _), axis in zip(box, axes, strict=True))
    free = tuple(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)
    return Kernel(like.origins[:1], packed, out, axes[part], free, value)


def _move(
    packed: Tensor, like: Kernel, part: int, axes: Sequence[Axis], out: tuple[Linear, ...], load: Load
) -> Kernel:
    free = tuple(axis for d, axis in enumerate(axes) if d != part and axis.extent > 1)
    return Kernel(like.origins[:1], packed, out, axes[part], free, load, by_dma=True)
