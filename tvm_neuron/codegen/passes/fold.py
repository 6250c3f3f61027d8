"""fold_constants: what depends on constants alone is computed now, with NumPy."""

from typing import Any

from numpy.typing import NDArray

from tvm_neuron.schedule.evaluate import evaluate_blocks
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor


def fold_constants(graph: Graph) -> None:
    """Gives a value to every tensor that blocks of constants write, and drops those blocks."""
    pending: dict[Tensor, list[Block]] = {}
    for block in graph.blocks:
        pending.setdefault(block.output, []).append(block)
    kept: list[Block] = []
    for block in graph.blocks:
        if block is not pending[block.output][-1]:
            continue
        writers = pending[block.output]
        if all(tensor.value is not None for writer in writers for tensor in writer.sources()):
            value = evaluate_blocks(writers)
            if block.output.kind == "output":
                kept.append(_written_out(block, value))
            else:
                block.output.value = value
        else:
            kept += writers
    graph.blocks = kept


def _written_out(block: Block, value: NDArray[Any]) -> Block:
    """An output that is known at compile time is written all the same."""
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(value.shape))
    index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
    constant = Tensor(f"{block.output.name}.value", value.shape, block.output.dtype, value=value)
    return Block(block.origin, axes, block.output, index, Load(constant, index))
