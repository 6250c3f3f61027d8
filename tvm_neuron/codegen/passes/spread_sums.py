"""spread_sums: sums that the PE array makes of rows along the partitions, and that all of these have.

A norm adds up the squares of each row and multiplies the row by what it computes of the sum. Its rows are results of a
product and operands of the next one, which has them along the partitions both times; a reduction has them within a
partition, and so transposes them, and what they become. The array adds them up where they lie: times ones, whose every
column makes the sum once more, so that all partitions have it.
"""

from collections.abc import Mapping
from dataclasses import replace

from tvm_neuron.codegen.passes.norm_parts import share_norm_parts
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, loads, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor

_LEAST = 16  # elements of a row: of fewer, most partitions would be idle
_ONES_SHARE = 32  # 1 / this of SBUF at most for the ones: of longer rows, other work takes far longer than to turn them


def can_spread(graph: Graph, device: Device) -> bool:
    """Whether there may be such sums, and the array multiplies float32."""
    return bool(device.fp32_matmul_passes) and any(_summed(graph, block, device) for block in graph.blocks)


def spread_sums(graph: Graph, device: Device) -> None:
    """Has the array make all such sums of which only arithmetic on the rows reads what becomes."""
    ones: dict[int, Tensor] = {}
    spread: list[Tensor] = []
    for block in graph.blocks:
        row = _summed(graph, block, device)
        if row is None or _is_of_extremes(graph, block, row):
            continue
        made = _made_of(graph, block.output)
        by = {tensor: _spread(tensor, row.extent) for tensor in (block.output, *(b.output for b in made))}
        readers = dict.fromkeys(b for tensor in by for b in graph.readers(tensor) if b not in made)
        along = {reader: _row_of(reader, by, row.extent) for reader in readers}
        if not readers or any(axis is None for axis in along.values()):
            continue
        begin = []
        if row.extent not in ones:
            begin.append(_ones(block, row.extent))
            ones[row.extent] = begin[0].output
        graph.replace(block, *begin, _product(block, row, by[block.output], ones[row.extent]))
        for other in made:
            graph.replace(other, _for_all(other, by, row.extent))
        for reader, axis in along.items():
            assert axis is not None
            graph.replace(reader, _reading(reader, by, axis))
        spread += by.values()
    share_norm_parts(graph, spread)


def _summed(graph: Graph, block: Block, device: Device) -> Axis | None:
    """The axis of the rows that the block adds up; None if it does anything else."""
    tensor, load = block.output, block.expr
    is_sum = block.combine == "add" and not block.init and isinstance(load, Load) and load.tensor.value is None
    if not is_sum or not isinstance(load, Load) or tensor.kind != "temp" or len(graph.writers(tensor)) != 1:
        return None
    summed = [axis for axis in block.reduction if axis.extent > 1]
    maps = linear_indices(load.indices)
    if len(summed) != 1 or maps is None or not tensor.dtype.startswith("float"):
        return None
    if not _LEAST <= summed[0].extent <= device.sbuf_bytes_per_partition // (4 * _ONES_SHARE):
        return None
    here = [part for part in maps if summed[0] in part.terms]
    is_whole = len(here) == 1 and here[0].terms == {summed[0]: 1} and not here[0].const
    rows = [part for part in maps if part.terms and summed[0] not in part.terms]
    return summed[0] if is_whole and all(set(part.terms.values()) == {1} for part in rows) else None


def _is_of_extremes(graph: Graph, block: Block, row: Axis) -> bool:
    """Whether what it adds up was made of the largest of each row, for which rows lie within partitions."""
    pending, seen = [block], {block}
    while pending:
        for load in pending.pop().loads():
            readers = graph.readers(load.tensor)
            if any(reader.combine in ("max", "min") and _reduces(reader, row.extent) for reader in readers):
                return True
            makers = [maker for maker in graph.writers(load.tensor) if not maker.combine and maker not in seen]
            pending += makers
            seen.update(makers)
    return False


def _reduces(reader: Block, extent: int) -> bool:
    return any(axis.extent == extent for axis in reader.reduction)


def _made_of(graph: Graph, tensor: Tensor) -> list[Block]:
    """The blocks that compute with the sums, and with nothing else that is known only at run time."""
    known, found = {tensor}, []
    pending = [tensor]
    while pending:
        for reader in graph.readers(pending.pop()):
            varying = {load.tensor for load in reader.loads() if load.tensor.value is None}
            if reader in found or reader.combine or not varying <= known or reader.output.kind != "temp":
                continue
            if len(graph.writers(reader.output)) != 1 or isinstance(reader.expr, Load):
                continue
            found.append(reader)
            known.add(reader.output)
            pending.append(reader.output)
    return found


def _row_of(reader: Block, by: Mapping[Tensor, Tensor], extent: int) -> Axis | None:
    """The axis of a reader that goes along the rows; None if there is none, or if it is not the only one."""
    if reader.combine:
        return None
    moved = {axis for load in loads(reader.expr) if load.tensor in by for axis in axes_of(load)}
    found = [axis for axis in reader.spatial if axis.extent == extent and axis not in moved]
    return found[0] if len(found) == 1 else None


def _spread(tensor: Tensor, extent: int) -> Tensor:
    return Tensor(f"{tensor.name}.spread", (extent, *tensor.shape), tensor.dtype, is_spread=True)


def _ones(block: Block, extent: int) -> Block:
    """What makes the ones that all sums of rows so long are multiplied by."""
    axes = Axis("k", extent), Axis("m", extent)
    tensor = Tensor("ones", (extent, extent), "float32", is_spread=True)
    return Block(block.origin, axes, tensor, tuple(map(Index, axes)), Num(1.0))


def _product(block: Block, row: Axis, out: Tensor, ones: Tensor) -> Block:
    channel = Axis("m", out.shape[0])
    expr = Apply("multiply", (block.expr, Load(ones, (Index(row), Index(channel)))))
    return replace(block, axes=(channel, *block.axes), output=out, index=(Index(channel), *block.index), expr=expr)


def _for_all(block: Block, by: Mapping[Tensor, Tensor], extent: int) -> Block:
    """The block for all partitions."""
    channel = Axis("m", extent)
    changed = _reading(block, by, channel)
    return replace(changed, axes=(channel, *block.axes), output=by[block.output], index=(Index(channel), *block.index))


def _reading(block: Block, by: Mapping[Tensor, Tensor], axis: Axis) -> Block:
    def leaf(part: Num | Index | Load) -> Expr:
        if isinstance(part, Load) and part.tensor in by:
            return Load(by[part.tensor], (Index(axis), *part.indices))
        return part

    return block.with_expr(rewrite(block.expr, leaf))
