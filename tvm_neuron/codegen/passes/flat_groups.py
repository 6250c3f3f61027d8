"""flat_groups: what is computed of channels by groups, [groups, channels of each], has all channels in one dimension.

One dimension lies on the partitions, and neither that of the groups nor that of each one's channels fills them.
"""

from dataclasses import replace

from tvm_neuron.codegen.passes.canonical import canonical, united
from tvm_neuron.codegen.passes.join_dims import in_step, with_joined
from tvm_neuron.codegen.passes.moves import read_through
from tvm_neuron.schedule.expr import Expr, Index, Load, Num, every_load, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def flat_groups(graph: Graph) -> None:
    """Lays those tensors flat that are made, element by element, of one whose channels are in one dimension."""
    is_any = False
    for tensor in list(graph.tensors()):
        writers, readers = graph.writers(tensor), graph.readers(tensor)
        dim = _parted_dim(writers[0]) if len(writers) == 1 and tensor.kind == "temp" else None
        if dim is None or not all(_is_plain(reader, tensor) for reader in readers):
            continue
        flat, is_any = with_joined(tensor, dim), True
        index = _joined(writers[0].index, tensor.shape, dim)
        graph.replace(writers[0], united(replace(writers[0], output=flat, index=index)))
        for reader in readers:
            graph.replace(reader, _reading(reader, tensor, flat, dim))
    if is_any:
        read_through(graph)


def _parted_dim(block: Block) -> int | None:
    """The dimension of groups, before that of each one's channels, where one of what is read has both in one."""
    out = linear_indices(block.index)
    if block.combine or out is None:
        return None
    read = [part for load in block.loads() if load.tensor.value is None for part in linear_indices(load.indices) or ()]
    for dim in range(len(out) - 1):
        pair = in_step(block.output, out, dim)
        if pair and Linear(0, {pair[0]: pair[1].extent, pair[1]: 1}) in read:
            return dim
    return None


def _is_plain(reader: Block, tensor: Tensor) -> bool:
    return all(linear_indices(load.indices) is not None for load in every_load(reader.expr) if load.tensor is tensor)


def _reading(reader: Block, tensor: Tensor, flat: Tensor, dim: int) -> Block:
    def leaf(part: Num | Index | Load) -> Expr:
        if isinstance(part, Load) and part.tensor is tensor:
            return Load(flat, _joined(part.indices, tensor.shape, dim))
        return part

    return united(canonical(reader.with_expr(rewrite(reader.expr, leaf))))


def _joined(indices: tuple[Expr, ...], shape: tuple[int, ...], dim: int) -> tuple[Expr, ...]:
    """The places in the flat tensor."""
    outer, inner = (linear_indices(indices) or ())[dim : dim + 2]
    return (*indices[:dim], (outer.scaled(shape[dim + 1]) + inner).expr(), *indices[dim + 2 :])
