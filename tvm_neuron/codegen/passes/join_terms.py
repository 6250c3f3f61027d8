"""join_terms: constants that are added to a tensor one after the other are one.

Embeddings of words get those of their positions and of a kind of text that is always the same.
"""

import numpy as np

from tvm_neuron.codegen.passes.moves import can_invert, inverse
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Load, axes_of, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import table_load

_Sum = tuple[Load, Load]  # what is known at run time, and what is added to it


def join_terms(graph: Graph) -> None:
    """Adds them up now, if the sum is finite and no larger than they are."""
    for block in graph.blocks:
        outer = _sum(block)
        writers = graph.writers(outer[0].tensor) if outer else []
        if outer is None or len(writers) != 1 or outer[0].tensor.kind != "temp" or not can_invert(writers[0]):
            continue
        inner = _sum(writers[0])
        if inner is None or graph.readers(outer[0].tensor) != [block]:
            continue
        if {inner[0].tensor.dtype, outer[0].tensor.dtype, block.output.dtype} != {"float32"}:
            continue
        by = inverse(writers[0], outer[0].indices)
        data, term = (Load(load.tensor, tuple(replace_axes(i, by) for i in load.indices)) for load in inner)
        total = _total(block, term, outer[1])
        if total is not None:
            graph.replace(writers[0])
            graph.replace(block, block.with_expr(Apply("add", (data, total))))


def _sum(block: Block) -> _Sum | None:
    """What the block adds a constant to, and that."""
    match block.expr:
        case Apply("add", (Load() as one, Load() as other)) if not block.combine:
            known = [load for load in (one, other) if load.tensor.value is not None]
            varying = [load for load in (one, other) if load.tensor.value is None]
            return (varying[0], known[0]) if len(known) == len(varying) == 1 else None
    return None


def _total(block: Block, one: Load, other: Load) -> Load | None:
    axes = [axis for axis in block.axes if axis in {*axes_of(one), *axes_of(other)}]
    with np.errstate(over="ignore", invalid="ignore"):  # which is asked below
        value = np.broadcast_to(evaluate(Apply("add", (one, other)), axes), [axis.extent for axis in axes])
    if value.size > max(one.tensor.elems, other.tensor.elems) or not np.isfinite(value).all():
        return None
    name = f"{other.tensor.name}.{one.tensor.name}"
    return table_load(name, value.astype(np.float32), axes)
