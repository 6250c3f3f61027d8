"""scale_after_products: numbers that operands of a product are multiplied by are multiplied to its result.

Attention scales its queries and keys, each by the root of the whole: that takes instructions of its own where they are
not results of a product themselves, as rotated ones are not, and none on the way out of the array.
"""

from dataclasses import replace

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import can_invert, inverse
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import product_factors
from tvm_neuron.schedule.tensor import Tensor

_WIDE = ("float32", "bfloat16")
"""What holds products that are not scaled yet."""


def scale_after_products(graph: Graph) -> None:
    """Does so with all operands that only products read."""
    for block in graph.blocks:
        pair = product_factors(block)
        if pair is None or block.output.dtype not in _WIDE:
            continue
        found = {load: scaled for load in dict.fromkeys(pair) if (scaled := _unscaled(graph, load)) is not None}
        if found:
            _change(graph, block, found)


def _unscaled(graph: Graph, load: Load) -> tuple[Load, float] | None:
    """What is read, and the number that it was multiplied by; None if it was not."""
    writers = graph.writers(load.tensor)
    if load.tensor.kind != "temp" or len(writers) != 1 or writers[0].combine or not can_invert(writers[0]):
        return None
    if not all(product_factors(reader) for reader in graph.readers(load.tensor)):
        return None
    match writers[0].expr:
        case Apply("multiply", (Load(tensor, indices), Num(value))) if tensor.value is None and value:
            if tensor.dtype == load.tensor.dtype and tensor.kind == "temp":
                by = inverse(writers[0], load.indices)
                return Load(tensor, tuple(replace_axes(index, by) for index in indices)), value
    return None


def _change(graph: Graph, block: Block, found: dict[Load, tuple[Load, float]]) -> None:
    scale = 1.0
    pair = product_factors(block) or ()
    for load in pair:
        scale *= found[load][1] if load in found else 1.0

    def leaf(part: Num | Index | Load) -> Expr:
        return found[part][0] if isinstance(part, Load) and part in found else part

    output = block.output
    product = Tensor(f"{output.name}.unscaled", output.shape, output.dtype)
    axes = tuple(Axis(f"a{d}", extent) for d, extent in enumerate(output.shape))
    index = tuple(map(Index, axes))
    scaled = Apply("multiply", (Load(product, index), Num(scale)))
    unscaled = canonical(replace(block, output=product, expr=rewrite(block.expr, leaf)))
    graph.replace(block, unscaled, canonical(Block(block.origin, axes, output, index, scaled)))
    for load in found:
        if not graph.readers(load.tensor):
            graph.replace(graph.writers(load.tensor)[0])
