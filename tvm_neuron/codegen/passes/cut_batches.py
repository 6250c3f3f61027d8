"""cut_batches: a product with other weights for each element of a batch becomes a product for each of them.

The PE array keeps one matrix of weights at a time; relative positions of attention, batched experts and matrices that
are parameters bring one for each row, expert or head. A product of one output channel, for which its result has no
dimension, as scores of an additive attention, gets one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.copies import moved_apart, replace_load
from tvm_neuron.codegen.passes.layout import assign_partitions
from tvm_neuron.codegen.passes.pieces import one_by_one
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import counts
from tvm_neuron.schedule.roles import data_factor, factors, is_constant_contraction
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

_Read = tuple[Tensor, tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...]]
"""A tensor, and of each dimension where it is read: from where, and the number, extent and step of each axis."""

MOST = 256
"""Products that one may become: each is a kernel, with weights of its own and a tile of the output."""


def cut_batches(graph: Graph, rules: Sequence[Rule], device: Device) -> None:
    """Replaces each contraction that no rule takes, since its weights change along a batch, by one for each element.

    And each that has no output channel by one that has.
    """
    apart: dict[_Read, Tensor] = {}
    for block in graph.blocks:
        data = data_factor(block)
        if data is None or not is_constant_contraction(block):
            continue
        batch = _batch(block, data)
        count = prod(axis.extent for axis in batch)
        is_to_cut = count > 1 or _is_all_of_data(block, data)
        if is_to_cut and count <= MOST and not _is_taken(block, data, rules, device):
            moved, reader = _with_depth_apart(block, data, apart)
            graph.replace(block, *moved, *_for_each(reader, batch))


def _with_depth_apart(block: Block, data: Load, apart: dict[_Read, Tensor]) -> tuple[list[Block], Block]:
    """The block reading data with a dimension of what it sums, as each head's channels are, and the move to there.

    `apart` has what was moved so before.
    """
    maps = linear_indices(data.indices) or ()
    depth = max(
        (axis for m in maps for axis in m.terms if axis.is_reduction), key=lambda axis: axis.extent, default=None
    )
    if depth is None or not any(depth in m.terms and len(m.terms) > 1 and counts(m.terms) for m in maps):
        return [], block
    used = [depth, *dict.fromkeys(axis for m in maps for axis in m.terms if axis is not depth)]
    numbers = {axis: number for number, axis in enumerate(used)}
    read = tuple((m.const, tuple((numbers[axis], axis.extent, step) for axis, step in m.terms.items())) for m in maps)
    if (data.tensor, read) in apart:
        return [], replace_load(block, data, Load(apart[data.tensor, read], tuple(map(Index, used))))
    move, there = moved_apart(block, data, used, "apart")
    apart[data.tensor, read] = move.output
    return [move], replace_load(block, data, there)


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


def _is_all_of_data(block: Block, data: Load) -> bool:
    """Whether no dimension of the output is left for its channel, of which there is one: data have them all."""
    varying = {axis for m in linear_indices(data.indices) or () for axis in m.terms}
    return varying.issuperset(axis for axis in block.spatial if axis.extent > 1)


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
    """Each into a tensor of its own, which is moved: its place among the others may be amid the partitions.

    Of a single output channel it has a dimension of one element for that, since all others are the data's.
    """
    for places, part in one_by_one(block, batch):
        axes = tuple(axis for axis in part.spatial if axis.extent > 1) or part.spatial[:1]
        data = data_factor(part)
        channel = (1,) if data and _is_all_of_data(part, data) else ()
        name = f"{block.output.name}.{'.'.join(map(str, places))}"
        tensor = Tensor(name, (*channel, *(axis.extent for axis in axes)), block.output.dtype)
        index: tuple[Expr, ...] = (*(Num(0) for _ in channel), *map(Index, axes))
        yield replace(part, output=tensor, index=index)
        moved = Block(block.origin, axes, block.output, part.index, Load(tensor, index))
        yield canonical(moved)
