"""channels_first: images whose last dimension lies on the partitions have it second, as folds and packed windows read.

Before: the dimension on the partitions is chosen for each tensor. After: no temporary of four dimensions has its last
one there. Nothing moves: in SBUF, the dimension on the partitions comes first, then the others in their order.
"""

from dataclasses import replace

from tvm_neuron.schedule.expr import Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor

_LAST, _SECOND = 3, 1
_ORDER = (0, _LAST, 1, 2)  # images, channels, rows, columns


def channels_first(graph: Graph, partition_of: dict[Tensor, int]) -> None:
    """Gives temporaries of four dimensions, of which the last lies on the partitions, another order of these."""
    made = dict.fromkeys(block.output for block in graph.blocks)
    first = {tensor: _first(tensor) for tensor in made if _is_image(tensor) and partition_of[tensor] == _LAST}
    if not first:
        return
    partition_of |= dict.fromkeys(first.values(), _SECOND)

    def leaf(part: Num | Index | Load) -> Expr:
        if isinstance(part, Load) and part.tensor in first:
            return Load(first[part.tensor], _in_order(part.indices))
        return part

    def changed(block: Block) -> Block:
        if block.output in first:
            block = replace(block, output=first[block.output], index=_in_order(block.index))
        return block.with_expr(rewrite(block.expr, leaf))

    graph.blocks = [changed(block) for block in graph.blocks]


def _is_image(tensor: Tensor) -> bool:
    return tensor.kind == "temp" and tensor.value is None and len(tensor.shape) == len(_ORDER)


def _first(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tuple(tensor.shape[dim] for dim in _ORDER))


def _in_order(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(indices[dim] for dim in _ORDER)
