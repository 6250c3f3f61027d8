"""divide_after_products: a guarded softmax's totals divide what its exponentials are multiplied to, not these.

The array waits neither for the division then, nor for the guard. (For the division alone it is not worth what it takes:
the result has to lie by row, and is transposed for the next product.)
"""

from dataclasses import replace

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import can_invert
from tvm_neuron.codegen.passes.softmaxes import Softmax, divide_by_row, seen_from, softmax_of
from tvm_neuron.schedule.expr import Expr, Index, Load, Num, axes_of, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import product_factors
from tvm_neuron.schedule.tensor import Tensor

_LEAST = 16  # rows: those of the result lie on the partitions, most of which would be idle for fewer
_WIDE = ("float32", "bfloat16")  # of products that are not divided yet


def divide_after_products(graph: Graph) -> None:
    """Does so with those of many rows that one product alone reads, where its rows are no longer than theirs."""
    for block in graph.blocks:
        if block.output.dtype not in _WIDE:
            continue
        for load in product_factors(block) or ():
            softmax = _operand(graph, block, load)
            if softmax is not None:
                _change(graph, block, load, softmax)
                break


def _operand(graph: Graph, product: Block, load: Load) -> Softmax | None:
    """The softmax that makes an operand, in the product's axes, if it may be divided after it."""
    writers = graph.writers(load.tensor)
    if len(writers) != 1 or load.tensor.kind != "temp" or graph.readers(load.tensor) != [product]:
        return None
    if not can_invert(writers[0]) or product.output.elems > load.tensor.elems:
        return None
    found = softmax_of(graph, writers[0])
    if found is None or found.exponential.tensor.dtype != load.tensor.dtype:
        return None
    softmax = seen_from(found, writers[0], load.indices)
    rows = {axis for axis in axes_of(softmax.total) if axis.extent > 1}
    others = {axis for factor in product_factors(product) or () if factor != load for axis in axes_of(factor)}
    is_long = any(axis.extent >= _LEAST for axis in rows - others)
    return softmax if is_long and not any(axis.is_reduction for axis in rows) else None


def _change(graph: Graph, block: Block, load: Load, softmax: Softmax) -> None:
    product = Tensor(f"{block.output.name}.undivided", block.output.shape, "float32")

    def leaf(part: Num | Index | Load) -> Expr:
        return softmax.exponential if part == load else part

    undivided = replace(block, output=product, expr=rewrite(block.expr, leaf))
    blocks, expr = divide_by_row(graph, softmax, Load(product, block.index))
    divided = replace(block, axes=block.spatial, expr=expr, combine="", init=0.0)
    graph.replace(block, *blocks, canonical(undivided), canonical(divided))
    for other in softmax.blocks:
        graph.replace(other)
