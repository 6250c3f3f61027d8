"""group_sums: what is summed over groups of channels that lie on the partitions, for each channel of its group at once.

A norm of groups adds up each channel, then those of a group, and all channels of the group read what becomes of that.
Within partitions, both take the sums off the partitions and bring the results back. The PE array does so where they
lie: its columns are the channels again, each with the sum of its own group. It multiplies all other groups by zero, so
that this is for what is infinite in all channels if in any: see `Mixed`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tvm_neuron.codegen.passes.by_array import Mixed
from tvm_neuron.codegen.passes.copies import replace_tensors
from tvm_neuron.codegen.passes.flat_groups import flat_groups
from tvm_neuron.codegen.passes.inside import reduced_inside
from tvm_neuron.codegen.passes.moves import plain_axes
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, loads, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear, NotLinearError, linear
from tvm_neuron.schedule.tensor import Tensor

MOST_CHANNELS = 384  # the matrix that adds them up has as many rows and columns, of float32
_SHARE = 4  # of the columns that take no longer


@dataclass(frozen=True)
class _Groups:
    """A sum over `inner`, a channel of a group, for each `outer`, a group, which the result counts in dimension `dim`.

    Channels are counted by dimension `data_dim` of what is read.
    """

    outer: Axis
    inner: Axis
    dim: int
    data_dim: int

    @property
    def channels(self) -> int:
        """How many there are in all groups."""
        return self.outer.extent * self.inner.extent


def group_sums(graph: Graph, device: Device) -> bool:
    """Has the array make all such sums, of so few columns that they take no longer in float32; whether there are any.

    Of several images, sums within partitions need no more instructions.
    """
    has_changed, passes = False, device.fp32_matmul_passes
    if not passes:
        return False
    flat_groups(graph)
    _sum_channels_first(graph)
    for block in graph.blocks:
        groups = _groups(graph, block)
        if groups is None:
            continue
        others = (axis.extent for axis in block.spatial if axis is not groups.outer)
        if _SHARE * passes * prod(others) > device.matmul_min_cycles:
            continue
        if not all(map(Mixed(graph).holds, block.sources())):
            continue
        made = _made_of(graph, block.output, groups)
        by = {each.output: _for_channels(each.output, groups) for each in (block, *made)}
        readers = dict.fromkeys(b for tensor in by for b in graph.readers(tensor) if b not in made)
        changed = {reader: _reading(reader, by, groups) for reader in readers}
        if not readers or any(other is None for other in changed.values()):
            continue
        scaled = _scaled(graph, block)
        if scaled is not None:
            graph.replace(scaled.writer)
        graph.replace(block, _sum(block, groups, by[block.output], scaled))
        for each in made:
            graph.replace(each, _for_each(each, by, groups))
        for reader, other in changed.items():
            assert other is not None
            graph.replace(reader, other)
        has_changed = True
    return has_changed


def _sum_channels_first(graph: Graph) -> None:
    """Has sums over groups of channels, and over more than these, add up each channel first, as layouts would."""
    for block in graph.blocks:
        load = block.expr
        if block.combine != "add" or not isinstance(load, Load) or (maps := linear_indices(load.indices)) is None:
            continue
        ways = (reduced_inside(block, load, maps, dim) for dim in range(len(maps)))
        staged = next((way for way in ways if way and _groups(graph, way[1])), None)
        if staged:
            graph.replace(block, *staged)


def _groups(graph: Graph, block: Block) -> _Groups | None:
    """Of a block that adds up neighbouring channels of something else; None if it does anything else."""
    load, out = block.expr, block.output
    summed = [axis for axis in block.reduction if axis.extent > 1]
    if block.combine != "add" or block.init or len(summed) != 1 or not isinstance(load, Load):
        return None
    if load.tensor.value is not None or load.tensor.dtype != "float32" or out.dtype != "float32":
        return None
    if out.kind != "temp" or len(graph.writers(out)) != 1:
        return None
    read, written = linear_indices(load.indices), linear_indices(block.index)
    places = [d for d, part in enumerate(read or ()) if summed[0] in part.terms]
    if read is None or written is None or len(places) != 1:
        return None
    part, (inner,) = read[places[0]], summed
    outer = next((axis for axis in part.terms if axis is not inner), None)
    if outer is None or part != Linear(0, {outer: inner.extent, inner: 1}):
        return None
    dims = [d for d, at in enumerate(written) if outer in at.terms]
    if len(dims) != 1 or written[dims[0]] != Linear(0, {outer: 1}) or sum(outer in at.terms for at in read) != 1:
        return None
    found = _Groups(outer, inner, dims[0], places[0])
    is_whole = load.tensor.shape[places[0]] == found.channels and out.shape[dims[0]] == outer.extent
    return found if is_whole and found.channels <= MOST_CHANNELS else None


def _made_of(graph: Graph, tensor: Tensor, groups: _Groups) -> list[Block]:
    """The blocks that compute with the sums, group by group, and with nothing else that changes from group to group."""
    known, found, pending = {tensor}, list[Block](), [tensor]
    while pending:
        for reader in graph.readers(pending.pop()):
            if reader not in found and _computes(graph, reader, known, groups):
                found.append(reader)
                known.add(reader.output)
                pending.append(reader.output)
    return found


def _computes(graph: Graph, reader: Block, known: set[Tensor], groups: _Groups) -> bool:
    out, written = reader.output, linear_indices(reader.index)
    if reader.combine or out.kind != "temp" or out.dtype != "float32" or len(graph.writers(out)) != 1 or not written:
        return False
    if len(written) <= groups.dim or len(written[groups.dim].terms) != 1 or written[groups.dim].const:
        return False
    ((axis, step),) = written[groups.dim].terms.items()
    if step != 1 or axis.extent != groups.outer.extent or out.shape[groups.dim] != axis.extent:
        return False
    if any(axis in part.terms for d, part in enumerate(written) if d != groups.dim):
        return False
    return all(_goes_along(load, axis, known, groups) for load in loads(reader.expr))


def _goes_along(load: Load, axis: Axis, known: set[Tensor], groups: _Groups) -> bool:
    """Whether it is read group by group as it is written, or the same for all groups."""
    if load.tensor not in known:
        return load.tensor.value is not None and axis not in axes_of(load)
    read = linear_indices(load.indices)
    return read is not None and read[groups.dim] == Linear(0, {axis: 1}) and _times(load, axis) == 1


def _times(load: Load, axis: Axis) -> int:
    return sum(axis in part.terms for part in linear_indices(load.indices) or ())


def _for_channels(tensor: Tensor, groups: _Groups) -> Tensor:
    shape = (*tensor.shape[: groups.dim], groups.channels, *tensor.shape[groups.dim + 1 :])
    return Tensor(f"{tensor.name}.channels", shape, tensor.dtype)


@dataclass(frozen=True)
class _Scaled:
    """What is added up is `tensor` times a number, which `writer` makes for nothing else."""

    writer: Block
    tensor: Tensor
    factor: float


def _scaled(graph: Graph, block: Block) -> _Scaled | None:
    """As of means of channels: the array multiplies by the number with its ones."""
    (read,) = block.loads()
    writers = graph.writers(read.tensor)
    if read.tensor.kind != "temp" or len(writers) != 1 or graph.readers(read.tensor) != [block] or writers[0].combine:
        return None
    match writers[0].expr:
        case Apply("multiply", (Load(tensor) as load, Num(factor))):
            pass
        case Apply("divide", (Load(tensor) as load, Num(number))) if number:
            factor = 1 / number
        case _:
            return None
    is_plain = plain_axes(writers[0].index) is not None and load.indices == writers[0].index
    is_alike = tensor.value is None and tensor.shape == read.tensor.shape and tensor.dtype == "float32"
    return _Scaled(writers[0], tensor, float(factor)) if is_plain and is_alike and factor else None


def _sum(block: Block, groups: _Groups, out: Tensor, scaled: _Scaled | None) -> Block:
    """As a product with a matrix that has one number where two channels are of one group, and no other."""
    every = np.arange(groups.channels) // groups.inner.extent
    value = (every[:, None] == every[None, :]).astype(np.float32) * np.float32(scaled.factor if scaled else 1)
    table = Tensor(f"{out.name}.groups", value.shape, "float32", value=value)
    channel, summed = Axis("m", groups.channels), Axis("k", groups.channels, True)
    assert isinstance(block.expr, Load)
    read = tuple(Index(summed) if d == groups.data_dim else part for d, part in enumerate(block.expr.indices))
    index = tuple(Index(channel) if d == groups.dim else part for d, part in enumerate(block.index))
    axes = (*(channel if axis is groups.outer else axis for axis in block.axes if axis is not groups.inner), summed)
    tensor = scaled.tensor if scaled else block.expr.tensor
    expr = Apply("multiply", (Load(tensor, read), Load(table, (Index(summed), Index(channel)))))
    return replace(block, axes=axes, output=out, index=index, expr=expr)


def _for_each(block: Block, by: Mapping[Tensor, Tensor], groups: _Groups) -> Block:
    """What is computed of a group, for each of its channels."""
    (axis,) = (linear_indices(block.index) or ())[groups.dim].terms
    channel = Axis(axis.name, groups.channels)
    to: dict[Axis, Expr] = {axis: Index(channel)}
    axes = tuple(channel if each is axis else each for each in block.axes)
    index = tuple(replace_axes(part, to) for part in block.index)
    expr = replace_axes(replace_tensors(block, by).expr, to)
    return replace(block, axes=axes, output=by[block.output], index=index, expr=expr)


def _reading(reader: Block, by: Mapping[Tensor, Tensor], groups: _Groups) -> Block | None:
    """What goes over the channels group by group, with the value of each; None if it is anything else."""
    read = [load for load in loads(reader.expr) if load.tensor in by]
    maps = [linear_indices(load.indices) for load in read]
    found = {axis for part in maps if part for axis in part[groups.dim].terms}
    if reader.combine or len(found) != 1 or any(part is None for part in maps):
        return None
    (outer,) = found
    if any(part and part[groups.dim] != Linear(0, {outer: 1}) for part in maps):
        return None
    step = groups.inner.extent
    written = [part for part in linear_indices(reader.index) or () if part.terms.get(outer) == step]
    inner = [axis for part in written for axis, by_one in part.terms.items() if by_one == 1 and axis.extent == step]
    if len(inner) != 1 or any(_times(load, outer) != 1 or _times(load, inner[0]) for load in read):
        return None
    channel = Axis(outer.name, groups.channels)

    def merged(index: Expr) -> Expr:
        """The index with the channel in the place of both axes."""
        part = linear(index)
        by_one = part.terms.get(inner[0], 0)
        if part.terms.get(outer, 0) != step * by_one:
            raise NotLinearError
        rest = {axis: by for axis, by in part.terms.items() if axis is not outer and axis is not inner[0]}
        return Linear(part.const, {**rest, channel: by_one} if by_one else rest).expr()

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load):
            return part
        if part.tensor not in by:
            return Load(part.tensor, tuple(map(merged, part.indices)))
        at = Index(channel)
        return Load(by[part.tensor], tuple(at if d == groups.dim else part for d, part in enumerate(part.indices)))

    axes = tuple(channel if axis is outer else axis for axis in reader.axes if axis is not inner[0])
    try:
        index, expr = tuple(map(merged, reader.index)), rewrite(reader.expr, leaf)
    except NotLinearError:  # something else is read by group, or by place in a group
        return None
    return None if {outer, inner[0]} & set(axes_of(expr)) else replace(reader, axes=axes, index=index, expr=expr)
