"""in_rows: what moves few channels off many rows goes by DMA, row by row, where the PE array would take longer.

An image with its channels last comes with its rows on the partitions, and the array transposes three numbers at a time,
one of each channel. If an engine first puts the columns of each channel side by side, DMA moves whole rows.
"""

from collections.abc import Sequence
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


def kernels_of(block: Block, rules: Sequence[Rule], partition_of: dict[Tensor, int], device: Device) -> list[Kernel]:
    """The kernel of a block, or several that do the same in less time; `partition_of` gets the tensors between them.

    Raises:
        UnschedulableError: no rule takes the block.
    """
    kernel = apply_rules(block, rules, Context(device, partition_of))
    load, root = block.expr, kernel.root
    if not isinstance(load, Load) or not isinstance(root, Transposition) or root.row not in block.spatial:
        return [kernel]
    source = load.tensor
    brought = Tensor(f"{block.output.name}.brought", source.shape, source.dtype)
    ordered = Tensor(f"{block.output.name}.rows", tuple(axis.extent for axis in _axes(block)), source.dtype)
    lie = {**partition_of, brought: partition_of[source], ordered: _axes(block).index(root.row)}
    by_dma = [rule for rule in rules if rule.name != _BY_ARRAY]
    try:
        found = [apply_rules(step, by_dma, Context(device, lie)) for step in _steps(block, load, brought, ordered)]
    except UnschedulableError:  # rows can't be put in order so: the array's way is the only one
        return [kernel]
    *_, orders, _move = found
    if orders.by_dma or sum(kernel_ps(each, lie, device) for each in found) >= kernel_ps(kernel, partition_of, device):
        return [kernel]
    partition_of |= {each.out: lie[each.out] for each in found if each.out is not block.output}
    return found


def _steps(block: Block, load: Load, brought: Tensor, ordered: Tensor) -> list[Block]:
    """An input comes into SBUF, where engines read it; what is moved is put in the order of the result, and moved."""
    index = tuple(map(Index, _axes(block)))
    bring = []
    if load.tensor.kind == "input":
        axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(brought.shape))
        whole = tuple(map(Index, axes))
        bring = [canonical(Block(block.origin, axes, brought, whole, Load(load.tensor, whole)))]
        load = replace(load, tensor=brought)
    order = replace(block, axes=_axes(block), output=ordered, index=index, expr=load)
    return [*bring, canonical(order), canonical(block.with_expr(Load(ordered, index)))]


def _axes(block: Block) -> tuple[Axis, ...]:
    """The block's, in the order of the dimensions that it writes."""
    places = {axis: dim for dim, part in enumerate(linear_indices(block.index) or ()) for axis in part.terms}
    return tuple(sorted(block.spatial, key=lambda axis: places.get(axis, 0)))
