"""signals: what convolutions along time read is an image of one column, as folds and packed windows read.

Before: the dimension on the partitions is chosen for each tensor. After: where a window runs along the last of three
dimensions, temporaries of three dimensions with channels on the partitions have a fourth one. Nothing moves.
"""

from dataclasses import replace

from tvm_neuron.schedule.expr import Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.roles import data_factor, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor

_DIMS, _CHANNELS, _TIME = 3, 1, 2


def signals(graph: Graph, partition_of: dict[Tensor, int]) -> None:
    """Gives such temporaries a last dimension of a single element."""
    if not any(map(_is_along_time, graph.blocks)):
        return

    def is_signal(tensor: Tensor) -> bool:
        return len(tensor.shape) == _DIMS and partition_of[tensor] == _CHANNELS

    made = dict.fromkeys(block.output for block in graph.blocks)
    images = {
        tensor: replace(tensor, shape=(*tensor.shape, 1))
        for tensor in made
        if tensor.kind == "temp" and is_signal(tensor)
    }
    partition_of |= dict.fromkeys(images.values(), _CHANNELS)

    def leaf(part: Num | Index | Load) -> Expr:
        if isinstance(part, Load) and part.tensor in images:
            return Load(images[part.tensor], (*part.indices, Num(0)))
        return part

    def changed(block: Block) -> Block:
        if block.output in images:
            block = replace(block, output=images[block.output], index=(*block.index, Num(0)))
        return block.with_expr(rewrite(block.expr, leaf))

    graph.blocks = [changed(block) for block in graph.blocks]


def _is_along_time(block: Block) -> bool:
    """Whether it multiplies windows along the last of three dimensions by weights."""
    data = data_factor(block) if is_constant_contraction(block) else None
    maps = linear_indices(data.indices) if data else None
    if maps is None or len(maps) != _DIMS:
        return False
    return len({axis.is_reduction for axis in maps[_TIME].terms}) > 1
