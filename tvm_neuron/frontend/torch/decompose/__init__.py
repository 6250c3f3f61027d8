"""What torch's exporter to ONNX has no rule for, or a wrong one, in simpler operators of torch.

It imports torch at once: it is imported when there is a program of torch.
"""

from typing import Any

from tvm_neuron.frontend.torch.decompose import (
    attention,
    by_hand,
    elementwise,
    ordering,
    pooling,
    ranges,
    reducing,
    resizing,
    scanning,
)

TABLE = {
    **attention.TABLE, **elementwise.TABLE, **ordering.TABLE, **pooling.TABLE, **ranges.TABLE, **reducing.TABLE,
    **resizing.TABLE, **scanning.TABLE,
}  # fmt: skip


_WRITTEN = attention.WRITTEN | reducing.WRITTEN
"""Of operators that are frequent, what tells nodes that the exporter writes right: a program without others stays."""


def decomposed(program: Any) -> Any:
    """The ExportedProgram without operators of the table; itself if it has none."""
    table = TABLE | by_hand.table()
    has_any = any(
        node.target in table and not (node.target in _WRITTEN and _WRITTEN[node.target](node))
        for module in program.graph_module.modules()
        if hasattr(module, "graph")
        for node in module.graph.nodes
    )
    return program.run_decompositions(table) if has_any else program
