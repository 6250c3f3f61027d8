"""in_rows: what moves few channels off many rows goes by DMA, row by row, where the PE array would take longer.

An image with its channels last comes with its rows on the partitions, and the array transposes three numbers at a time,
one of each channel. If an engine first puts the columns of each channel side by side, DMA moves whole rows. So it does
with the columns of an image on the partitions, if the array first brings its rows there. And where rows are in order as
they are, an input's above all, DMA alone does it.
"""

from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from dataclasses import replace

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.move_cost import kernel_ps
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.kernel import Kernel, Transposition
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

_BY_ARRAY = "transposition"  # the rule by which the PE array moves
_CLEARLY = 0.3  # of the price: what waits for a transfer, or delays it, is not in it


def kernels_of(
    block: Block, rules: Sequence[Rule], partition_of: dict[Tensor, int], device: Device
) -> list[list[Kernel]]:
    """The kernel of a block, or several that do the same in less time; then others by which DMA may do it sooner.

    Those are by what they take by themselves: whether work that goes on meanwhile is delayed, the clock tells.
    `partition_of` gets the tensors between them, of either way.

    Raises:
        UnschedulableError: no rule takes the block.
    """
    kernel = apply_rules(block, rules, Context(device, partition_of))
    load, root = block.expr, kernel.root
    if not isinstance(load, Load) or not isinstance(root, Transposition) or root.row not in block.spatial:
        return [[kernel]]
    if kernel_ps(kernel, partition_of, device) <= 1000 * device.dma_start_ns:  # no transfer is over so soon
        return [[kernel]]
    by_dma = [rule for rule in rules if rule.name != _BY_ARRAY]
    lie = ChainMap[Tensor, int]({}, partition_of)
    device = replace(device, dma_transpose_percent=0)  # what comes element by element is turned by `turn_inputs`

    def price_ps(way: list[Kernel]) -> int:
        return sum(kernel_ps(each, lie, device) for each in way)

    usual, others = [kernel], []
    for dim in (None, *range(len(_axes(block)))):
        steps = [block] if dim is None else _in_order(block, load, dim, lie)
        try:
            before = [apply_rules(step, rules, Context(device, lie)) for step in steps[:-1]]
            found = [*before, apply_rules(steps[-1], by_dma, Context(device, lie))]
        except UnschedulableError:  # rows can't be put in order so
            continue
        if before and before[-1].by_dma:
            continue
        if before and before[-1].root is None:
            usual = min(usual, found, key=price_ps)
        else:
            others.append(found)
    best = min(others, key=price_ps, default=usual)
    ways = [usual, best] if price_ps(best) < _CLEARLY * price_ps(usual) else [usual]
    partition_of |= {each.out: lie[each.out] for way in ways for each in way[:-1]}
    return ways


def _in_order(block: Block, load: Load, dim: int, lie: MutableMapping[Tensor, int]) -> list[Block]:
    """An input comes into SBUF, where engines read it; what is moved is put in the order of the result, and moved.

    In order, its dimension `dim` lies on the partitions.
    """
    index, steps, source = tuple(map(Index, _axes(block))), [], load.tensor
    if source.kind == "input":
        brought = Tensor(f"{block.output.name}.brought", source.shape, source.dtype)
        lie[brought] = lie[source]
        axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(brought.shape))
        whole = tuple(map(Index, axes))
        steps = [canonical(Block(block.origin, axes, brought, whole, Load(source, whole)))]
        load = replace(load, tensor=brought)
    ordered = Tensor(f"{block.output.name}.rows", tuple(axis.extent for axis in _axes(block)), source.dtype)
    lie[ordered] = dim
    order = replace(block, axes=_axes(block), output=ordered, index=index, expr=load)
    return [*steps, canonical(order), canonical(block.with_expr(Load(ordered, index)))]


def _axes(block: Block) -> tuple[Axis, ...]:
    """The block's, in the order of the dimensions that it writes."""
    places = {axis: dim for dim, part in enumerate(linear_indices(block.index) or ()) for axis in part.terms}
    return tuple(sorted(block.spatial, key=lambda axis: places.get(axis, 0)))
