"""fold_constants: what depends on constants alone is computed now, with NumPy."""

from tvm_neuron.schedule.evaluate import evaluate_blocks
from tvm_neuron.schedule.graph import Block, Graph, Tensor


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
        if all(load.tensor.value is not None for writer in writers for load in writer.loads()):
            block.output.value = evaluate_blocks(writers)
        else:
            kept += writers
    graph.blocks = kept
