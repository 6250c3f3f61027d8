"""scale_after_moves: scales and shifts by channel are applied where the channels have come to lie on the partitions."""

from dataclasses import replace

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.codegen.kernels.affine import Scaled, as_scaled, emit_scaled
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_FEWER = 4  # times as many lanes compute before the move: what goes by DMA has no way out of PSUM


def scale_after_moves(graph: Graph, partition_of: dict[Tensor, int]) -> None:
    """What is scaled and shifted by constants, only to be laid out another way, is so after its move.

    Along the free axes such constants are whole tiles, which must be brought in and cost the engines a pass each; along
    the partitions the move's own way out of PSUM takes them on. That is how a LayerNormalization ends in a transformer.
    """
    for block in graph.blocks:
        readers = graph.readers(block.output)
        is_ours = block.output.kind == "temp" and len(graph.writers(block.output)) == 1 and not block.combine
        is_ours = is_ours and not is_integer(block.output.dtype)
        if not is_ours or len(readers) != 1 or not _is_plain_copy(readers[0], block.output):
            continue
        (move,) = readers
        dim = partition_of[move.output]
        parts = _scaled(block, dim) if isinstance(move.index[dim], Index) else None  # else there is one channel
        lanes = min(block.output.shape[partition_of[block.output]], PARTITIONS)
        if parts is None or _FEWER * move.output.shape[dim] < lanes:
            continue
        plain = Tensor(f"{move.output.name}.plain", move.output.shape, move.output.dtype)
        partition_of[plain] = dim
        graph.replace(block, block.with_expr(parts.inner))
        graph.replace(move, replace(move, output=plain), _scaling(move, plain, dim, parts))


def _is_plain_copy(reader: Block, tensor: Tensor) -> bool:
    """Whether each element that it copies comes to the same place, of a tensor that may have fewer of them."""
    load = reader.expr
    return not reader.combine and isinstance(load, Load) and load.tensor is tensor and load.indices == reader.index


def _scaled(block: Block, dim: int) -> Scaled | None:
    """What the block computes, without scales and shifts that change along dimension `dim` of its output alone."""
    part = block.index[dim]
    if not isinstance(part, Index):
        return None
    found = as_scaled(block.expr, part.axis)
    return found if max(found.scale.size, found.shift.size) > 1 else None


def _scaling(move: Block, plain: Tensor, dim: int, parts: Scaled) -> Block:
    """What makes the output of the move of its plain copy."""
    axes = tuple(Axis(axis.name, axis.extent) for axis in move.axes)
    by: dict[Axis, Expr] = {old: Index(new) for old, new in zip(move.axes, axes, strict=True)}
    index = tuple(replace_axes(part, by) for part in move.index)
    channel = index[dim]
    assert isinstance(channel, Index)
    expr = emit_scaled(Scaled(Load(plain, index), parts.scale, parts.shift), channel.axis)
    return replace(move, axes=axes, index=index, expr=expr)
