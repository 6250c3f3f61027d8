"""nan_rows: whether an element of a softmax is NaN is asked once for its row, which is NaN as a whole or nowhere.

Exporters of attention put zeros where a softmax gives NaN, as it does for rows that are masked from end to end. A row's
exponentials are those of distances from its maximum. If that is finite, they are at most 1, one of them is 1, and so
their sum is a number, and not zero; else one of them is NaN, and so is their sum, by which all are divided.
"""

from dataclasses import replace

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, loads, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor


def nan_rows(graph: Graph) -> None:
    """What only compares elements of a softmax with infinity compares the sums of their rows."""
    for block in graph.blocks:
        found = list(loads(block.expr))
        if block.combine or len(found) != 1 or not _tells_nan(block.expr):
            continue
        softmax = _softmax(graph, found[0].tensor)
        if softmax is None:
            continue
        total, kept = softmax
        small = Tensor(f"{block.output.name}.rows", total.shape, block.output.dtype)
        graph.replace(block, _of_rows(block, small, total), _spread(block, small, found[0], kept))


def _tells_nan(expr: Expr) -> bool:
    """Whether it is true for NaN alone, or for all but NaN."""
    match expr:
        case Apply("not", (inner,)):
            return _tells_nan(inner)
        case Apply("is_le", (Load(), Num(limit))):
            return limit == float("inf")
    return False


def _of_rows(block: Block, small: Tensor, total: Tensor) -> Block:
    """What the block asks of elements, asked of the rows' sums."""
    axes = tuple(Axis(f"r{at}", extent) for at, extent in enumerate(small.shape))
    index = tuple(map(Index, axes))
    expr = rewrite(block.expr, lambda part: Load(total, index) if isinstance(part, Load) else part)
    return Block(block.origin, axes, small, index, expr)


def _spread(block: Block, small: Tensor, load: Load, kept: tuple[int, ...]) -> Block:
    """The block with the answer of each element's row; `kept` are the dimensions that rows have besides their own."""
    axes = tuple(replace(axis) for axis in block.axes)
    by: dict[Axis, Expr] = {old: Index(new) for old, new in zip(block.axes, axes, strict=True)}
    index = tuple(replace_axes(part, by) for part in block.index)
    return replace(
        block, axes=axes, index=index, expr=Load(small, tuple(replace_axes(load.indices[dim], by) for dim in kept))
    )


def _softmax(graph: Graph, tensor: Tensor) -> tuple[Tensor, tuple[int, ...]] | None:
    """The sums that exponentials were divided by, and the softmax's dimensions that these have; None if it is none."""
    match _made(graph, tensor):
        case Block(index=place, combine="", expr=Apply("divide", (Load() as power, Load() as total))):
            by_total = _reduced(graph, total.tensor, power.tensor, "add")
        case _:
            return None
    match _made(graph, power.tensor):
        case Block(index=inside, combine="", expr=Apply("exp", (Apply("subtract", (Load() as score, Load() as top)),))):
            by_top = _reduced(graph, top.tensor, score.tensor, "max")
        case _:
            return None
    if by_total is None or by_top != by_total or power.indices != place or score.indices != inside:
        return None
    rows = [tuple(index[dim] for dim in by_total) for index in (place, inside)]
    return (total.tensor, by_total) if [total.indices, top.indices] == rows else None


def _made(graph: Graph, tensor: Tensor) -> Block | None:
    writers = graph.writers(tensor)
    return writers[0] if len(writers) == 1 else None


def _reduced(graph: Graph, tensor: Tensor, source: Tensor, combine: str) -> tuple[int, ...] | None:
    """The source's dimensions that are those of `tensor`, if that reduces all of the others, each as a whole."""
    block = _made(graph, tensor)
    if block is None or block.combine != combine or not isinstance(block.expr, Load) or block.expr.tensor is not source:
        return None
    kept = []
    for dim, part in enumerate(block.expr.indices):
        axis = part.axis if isinstance(part, Index) else None
        if source.shape[dim] > 1 and (axis is None or axis.extent != source.shape[dim]):
            return None
        if not any(axis.is_reduction for axis in axes_of(part)):
            kept.append(dim)
    return tuple(kept) if block.index == tuple(block.expr.indices[dim] for dim in kept) else None
