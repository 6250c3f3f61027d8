"""guard_rows: what makes 0 of a softmax's NaN asks once for each row, not of every element.

torch exports attention so: a row that is masked as a whole is NaN, and becomes 0.
"""

from tvm_neuron.codegen.passes.softmaxes import divide_by_row, softmax_of
from tvm_neuron.schedule.graph import Graph


def guard_rows(graph: Graph) -> None:
    """Has the softmax do so by row, if only what guards it reads it."""
    for block in graph.blocks:
        softmax = softmax_of(graph, block)
        if softmax is None:
            continue
        blocks, expr = divide_by_row(graph, softmax, softmax.exponential)
        graph.replace(block, *blocks, block.with_expr(expr))
        for other in softmax.blocks[:-1]:
            graph.replace(other)
