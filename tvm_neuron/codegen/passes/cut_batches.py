"""cut_batches: a product with other weights for each element of a batch becomes a product for each of them.

The PE array keeps one matrix of weights at a time; relative positions of attention, batched experts and matrices that
are parameters bring one for each row, expert or head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.layout import assign_partitions
from tvm_neuron.codegen.passes.pieces import on_box
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

MOST = 256
"""Products that one may become: each is a kernel, with weights of its own and a tile of the output."""


def cut_batches(graph: Graph, rules: Sequence[Rule], device: Device) -> None:
    """Replaces each contraction that no rule takes, since its weights change along a batch, by one for each element."""
    for block in graph.blocks:
        data = data_factor(block)
        if data is None or not is_constant_contraction(block):
            continue
        batch = _batch(block, data)
        if 1 < prod(axis.extent for axis in batch) <= MOST and not _is_taken(block, data, rules, device):
            graph.replace(block, *_for_each(block, batch))


def _batch(block: Block, data: Load) -> list[Axis]:
    """The axes along which weights change, but for those that data sum over and those of the most output channels."""
    maps, out_maps = linear_indices(data.indices), linear_indices(block.index)
    if maps is None or out_maps is None:
        return []
    constants = [part for part in factors(block.expr) if isinstance(part, Load) and part is not data]
    changing = {axis for part in constants for m in linear_indices(part.indices) or () for axis in m.terms}
    varying = {axis for m in maps for axis in m.terms}
    own = [[axis for axis in m.terms if axis in changing - varying] for m in out_maps]
    rows = max(own, key=lambda axes: prod(axis.extent for axis in axes), default=[])
    return [axis for axis in block.spatial if axis in changing and axis.extent > 1 and axis not in rows]


def _is_taken(block: Block, data: Load, rules: Sequence[Rule], device: Device) -> bool:
    """Whether a rule takes it as it is: groups of channels, say, which are a block diagonal of one matrix."""
    alone = Graph([data.tensor], [block.output], [block])
    partition_of = assign_partitions(alone, {})
    try:
        for each in alone.blocks:
            apply_rules(each, rules, Context(device, partition_of))
    except UnschedulableError:
        return False
    return True


def _for_each(block: Block, batch: Sequence[Axis]) -> Iterator[Block]:
    """Each into a tensor of its own, which is moved: its place among the others may be amid the partitions."""
    whole = {axis: (0, axis.extent) for axis in block.axes}
    for places in product(*(range(axis.extent) for axis in batch)):
        box = whole | {axis: (at, at + 1) for axis, at in zip(batch, places, strict=True)}
        part = canonical(on_box(block, box, block.expr))
        axes = tuple(axis for axis in part.spatial if axis.extent > 1) or part.spatial[:1]
        name = f"{block.output.name}.{'.'.join(map(str, places))}"
        tensor = Tensor(name, tuple(axis.extent for axis in axes), block.output.dtype)
        index = tuple(map(Index, axes))
        yield replace(part, output=tensor, index=index)
        moved = Block(block.origin, axes, block.output, part.index, Load(tensor, index))
        yield canonical(moved)
