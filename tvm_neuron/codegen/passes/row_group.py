"""RowGroup: a row of output channels that is reduced whole, and all that is computed of it, element by element."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tvm_neuron.schedule.expr import Axis, Expr, Load, axes_of
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import NEUTRAL
from tvm_neuron.schedule.roles import data_factor, gathered, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Tensors of `extent` elements and of one, the blocks that write them, and of these the contractions.

    Every other reader of these tensors is no part of it: there is none.
    """

    extent: int
    tensors: dict[Tensor, None] = field(default_factory=dict)
    blocks: dict[Block, None] = field(default_factory=dict)

    @property
    def heads(self) -> list[Block]:
        """The contractions that make rows."""
        return [block for block in self.blocks if is_constant_contraction(block)]


def row_groups(graph: Graph) -> Iterator[RowGroup]:
    """The groups of a graph that begin with contractions; nothing is in two of them."""
    seen: set[Tensor] = set()
    for block in graph.blocks:
        if not block.combine or not isinstance(block.expr, Load) or block.expr.tensor in seen:
            continue
        if _is_whole_reduction(block, block.expr.tensor.elems):
            group = _group(graph, block.expr.tensor)
            if group is not None and group.heads:
                seen |= group.tensors.keys()
                yield group


def chain_of(graph: Graph, head: Block) -> list[Block]:
    """The contraction and the arithmetic behind it that reads nothing else, up to what has several readers."""
    chain = [head]
    while True:
        tensor = chain[-1].output
        readers = graph.readers(tensor)
        if tensor.kind != "temp" or len(readers) != 1 or readers[0].combine or set(_run_time(readers[0])) != {tensor}:
            return chain
        chain.append(readers[0])


def row_axis(tensor: Tensor, indices: tuple[Expr, ...]) -> Axis | None:
    """The axis that counts all elements of a tensor in order, None if there is none."""
    maps = linear_indices(indices)
    long = [part for part in maps or () if part.terms]
    if len(long) != 1 or len(long[0].terms) != 1:
        return None
    axis = next(iter(long[0].terms))
    return axis if axis.extent == tensor.elems and long[0] == Linear(0, {axis: 1}) else None


def _group(graph: Graph, start: Tensor) -> RowGroup | None:
    """What is reached from a tensor; None if some of it is no such row, is no float, or is read by anything else."""
    group = RowGroup(start.elems)
    left = [start]
    while left:
        tensor = left.pop()
        if tensor in group.tensors:
            continue
        group.tensors[tensor] = None
        writers = graph.writers(tensor)
        is_single_output = tensor.elems == 1 and tensor.kind == "output"
        if len(writers) != 1 or is_single_output or not tensor.dtype.startswith(("float", "bfloat")):
            return None
        if _is_head(writers[0], group.extent):
            group.blocks[writers[0]] = None
            writers = []
        for block in (*writers, *graph.readers(tensor)):
            if not _is_whole_reduction(block, group.extent) and not _is_map(block, group.extent):
                return None
            group.blocks[block] = None
            left += [block.output, *_run_time(block)]
    return group


def _run_time(block: Block) -> list[Tensor]:
    return [tensor for tensor in block.sources() if tensor.value is None]


def _is_head(block: Block, extent: int) -> bool:
    """Whether it multiplies one and the same data by a column of weights for each element of the row."""
    data = data_factor(block)
    axis = row_axis(block.output, block.index)
    if data is None or axis is None or not is_constant_contraction(block) or axis.extent != extent:
        return False
    return axis not in set(axes_of(data))


def _is_whole_reduction(block: Block, extent: int) -> bool:
    load = block.expr
    if not block.combine or not isinstance(load, Load) or load.tensor.value is not None or extent == 1:
        return False
    axis = row_axis(load.tensor, load.indices)
    is_whole = axis is not None and axis.is_reduction and axis.extent == extent and block.output.elems == 1
    return is_whole and NEUTRAL[block.combine](block.init)


def _is_map(block: Block, extent: int) -> bool:
    """Whether it computes each element of a row, or a number, from the same element of rows and from numbers."""
    if block.combine or gathered(block):
        return False
    axis = row_axis(block.output, block.index)
    if block.output.elems not in (1, extent) or (axis is None) != (block.output.elems == 1):
        return False
    varying = [load for load in block.loads() if load.tensor.value is None]
    return all(load.tensor.elems == 1 or (axis and row_axis(load.tensor, load.indices) is axis) for load in varying)
