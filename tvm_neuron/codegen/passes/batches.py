"""split_batches: attention whose scores are too large to lie in SBUF at once is computed some heads after others.

Scores of one head that are too large even so are computed some rows after others.
"""

from dataclasses import dataclass, field, replace

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import product_factors
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

SHARE = 16  # of SBUF that one such tensor may take; a softmax needs a few of its size
TOGETHER = 4  # tensors: scores, exponentials, their shares, and these transposed
ITEM = 2  # bytes of an element of a large tensor


def split_batches(graph: Graph, device: Device) -> None:
    """Cuts an axis of batches of each large product, and of all that follows until the next product, into groups.

    What lies between (scores, their exponentials and sums) becomes a tensor for each group, short-lived and small.
    """
    limit = device.sbuf_bytes_per_partition // SHARE * PARTITIONS
    done: set[Block] = set()
    while True:
        large = [
            block
            for block in graph.blocks
            if block not in done and product_factors(block) and block.output.elems * ITEM > limit
        ]
        if not large:
            return
        done.add(large[0])
        is_over = large[0].output.elems * ITEM * TOGETHER > device.sbuf_bytes_per_partition * PARTITIONS
        axes, least = _cut_axes(large[0], is_over)
        chains = (_chain(graph, large[0], axis) for axis in axes)
        chain = next((found for found in chains if found is not None), None)
        if chain is not None:
            fits = limit * chain.extent // (large[0].output.elems * ITEM)
            _split(graph, chain, max(least, 1 << max(0, fits.bit_length() - 1)))


@dataclass
class _Chain:
    """Blocks from one product to the next, the axis of batches in each, and its dimension in the tensors between."""

    extent: int
    axis_of: dict[Block, Axis]
    inside: dict[Tensor, int] = field(default_factory=dict)


def _cut_axes(product: Block, is_over: bool) -> tuple[list[Axis], int]:
    """The longest axis of batches; where there is none, and memory is too small, either operand's rows if many.

    And how many of it are together at least: rows come to lie on the partitions.
    """
    pair = product_factors(product) or ()
    left, right = ({axis for m in linear_indices(load.indices) or () for axis in m.terms} for load in pair)
    batches = [axis for axis in product.spatial if axis in left & right and axis.extent > 1]
    if batches:
        return [max(batches, key=lambda axis: axis.extent)], 1
    return [axis for axis in product.spatial if is_over and axis.extent > PARTITIONS], PARTITIONS


def _chain(graph: Graph, first: Block, axis: Axis) -> _Chain | None:
    if first.output.kind != "temp":
        return None
    chain = _Chain(axis.extent, {first: axis})
    if not _add_output(graph, chain, first, axis):
        return None
    ends: set[Tensor] = set()
    for block in graph.blocks:
        if any(load.tensor in ends for load in block.loads()):
            if any(load.tensor in chain.inside for load in block.loads()):
                return None
            continue
        here = _axis_in(block, chain)
        if here is None:
            continue
        if here.is_reduction or here.extent != chain.extent:
            return None
        chain.axis_of[block] = here
        if product_factors(block) or block.output.kind != "temp":
            ends.add(block.output)
        elif not _add_output(graph, chain, block, here):
            return None
    is_used_late = all(_is_after(graph, reader, chain) for tensor in ends for reader in graph.readers(tensor))
    return chain if ends and is_used_late else None


_NONE = Axis("none", 0)  # where a block follows the batches in no single way


def _axis_in(block: Block, chain: _Chain) -> Axis | None:
    """The axis along which a block moves through the batches of the tensors between; None if it reads none of them."""
    loads = [load for load in block.loads() if load.tensor in chain.inside]
    axes = {_plain_axis(load.indices[chain.inside[load.tensor]]) for load in loads}
    if not loads:
        return None
    return next(iter(axes)) if len(axes) == 1 else _NONE


def _plain_axis(index: Expr) -> Axis:
    maps = linear_indices((index,)) or (Linear(1),)
    ((axis, step),) = tuple(maps[0].terms.items()) if len(maps[0].terms) == 1 else ((_NONE, 1),)
    return axis if step == 1 and not maps[0].const else _NONE


def _add_output(graph: Graph, chain: _Chain, block: Block, axis: Axis) -> bool:
    dims = [d for d, index in enumerate(block.index) if _plain_axis(index) is axis]
    is_single = sum(axis in set(axes_of(index)) for index in block.index) == 1
    if len(dims) != 1 or not is_single or len(graph.writers(block.output)) != 1:
        return False
    chain.inside[block.output] = dims[0]
    return block.output.shape[dims[0]] == chain.extent


def _is_after(graph: Graph, reader: Block, chain: _Chain) -> bool:
    order = {block: place for place, block in enumerate(graph.blocks)}
    return order[reader] > max(order[block] for block in chain.axis_of)


def _split(graph: Graph, chain: _Chain, size: int) -> None:
    *others, last = chain.axis_of
    pieces: list[Block] = []
    for low in range(0, chain.extent, size):
        count = min(size, chain.extent - low)
        parts = {tensor: _part(tensor, dim, count, low) for tensor, dim in chain.inside.items()}
        pieces += [_piece(block, axis, low, count, parts) for block, axis in chain.axis_of.items()]
    graph.replace(last, *pieces)
    for block in others:
        graph.replace(block)


def _part(tensor: Tensor, dim: int, count: int, low: int) -> Tensor:
    shape = tuple(count if d == dim else extent for d, extent in enumerate(tensor.shape))
    return Tensor(f"{tensor.name}.from{low}", shape, tensor.dtype)


def _piece(block: Block, axis: Axis, low: int, count: int, parts: dict[Tensor, Tensor]) -> Block:
    """The block over `count` batches from `low`: tensors between are indexed from 0, all others from `low`."""
    new = Axis(axis.name, count)
    inner: dict[Axis, Expr] = {axis: Index(new)}
    outer: dict[Axis, Expr] = {axis: Apply("add", (Index(new), Num(low)))}

    def moved(expr: Expr) -> Expr:
        if isinstance(expr, Apply):
            return Apply(expr.op, tuple(map(moved, expr.args)))
        if isinstance(expr, Load) and expr.tensor in parts:
            return Load(parts[expr.tensor], tuple(replace_axes(index, inner) for index in expr.indices))
        return replace_axes(expr, outer)

    by = inner if block.output in parts else outer
    piece = replace(
        block,
        axes=tuple(new if a is axis else a for a in block.axes),
        output=parts.get(block.output, block.output),
        index=tuple(replace_axes(index, by) for index in block.index),
        expr=moved(block.expr),
    )
    return canonical(piece)
