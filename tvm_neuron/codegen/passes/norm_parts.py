"""share_norm_parts: what a norm computes of each row's sums, and how far elements lie from the mean, once.

Written out, the mean is subtracted from elements to square them for the variance, and again to scale them by what each
computes of the variance. Where all partitions have the sums, what is computed of these alone may be so on their way out
of PSUM, and the differences are read twice.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from tvm_neuron.isa.functions import ACTIVATION
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, loads
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor


def share_norm_parts(graph: Graph, spread: Sequence[Tensor]) -> None:
    """Has both be tensors of their own, of sums and what is made of them, which all partitions have."""
    for tensor in spread:
        for reader in graph.readers(tensor):
            _compute_apart(graph, reader, spread)
        _share_differences(graph, tensor)


def _compute_apart(graph: Graph, reader: Block, spread: Container[Tensor]) -> None:
    """What the reader computes of sums alone by a function of ACT."""
    for value in [] if reader.combine or reader.output.is_spread else list(_of_sums(reader.expr, spread)):
        first = next(loads(value))
        shape = first.tensor.shape
        if any(load.indices != first.indices or load.tensor.shape != shape for load in loads(value)):
            continue
        out = Tensor(f"{reader.output.name}.rows", shape, first.tensor.dtype, is_spread=True)
        axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(shape))
        index: tuple[Expr, ...] = tuple(map(Index, axes))
        made = Block(reader.origin, axes, out, index, _read_at(value, index))
        after = reader.with_expr(_replaced(reader.expr, value, Load(out, first.indices)))
        graph.replace(reader, made, after)
        reader = after


def _of_sums(expr: Expr, spread: Container[Tensor]) -> Iterator[Apply]:
    """The largest parts of an expression that read sums alone, and take more than a multiplication or an addition."""
    if not isinstance(expr, Apply):
        return
    read = list(loads(expr))
    if read and all(load.tensor in spread for load in read):
        if _has_function(expr):
            yield expr
        return
    for arg in expr.args:
        yield from _of_sums(arg, spread)


def _has_function(expr: Expr) -> bool:
    return isinstance(expr, Apply) and (expr.op in ACTIVATION or any(map(_has_function, expr.args)))


def _read_at(expr: Expr, index: tuple[Expr, ...]) -> Expr:
    if isinstance(expr, Apply):
        return Apply(expr.op, tuple(_read_at(arg, index) for arg in expr.args))
    return Load(expr.tensor, index) if isinstance(expr, Load) else expr


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr == old:
        return new
    return Apply(expr.op, tuple(_replaced(arg, old, new) for arg in expr.args)) if isinstance(expr, Apply) else expr


@dataclass(frozen=True)
class _Difference:
    """An element plus a row's value; of each index of the latter, which of the former's it is, or a number."""

    elements: Tensor
    places: tuple[int | Num, ...]


def _share_differences(graph: Graph, row: Tensor) -> None:
    """The sums of elements and the row's value that several blocks compute."""
    found: dict[_Difference, list[Block]] = {}
    for reader in graph.readers(row):
        for difference in {_difference(part) for part in _sums(reader.expr, row)} if not reader.combine else ():
            if difference is not None:
                found.setdefault(difference, []).append(reader)
    for difference, readers in found.items():
        if len(readers) > 1:
            _share(graph, difference, row, readers)


def _sums(expr: Expr, row: Tensor) -> Iterator[Apply]:
    match expr:
        case Apply("add", (Load(), Load(tensor))) if tensor is row:
            yield expr
        case Apply(_, args):
            for arg in args:
                yield from _sums(arg, row)


def _difference(part: Apply) -> _Difference | None:
    elements, row = part.args
    assert isinstance(elements, Load)
    assert isinstance(row, Load)
    tensor = elements.tensor
    axes = [index for index in elements.indices if isinstance(index, Index)]
    is_whole = all(
        (isinstance(index, Index) and index.axis.extent == extent) or (index == Num(0) and extent == 1)
        for index, extent in zip(elements.indices, tensor.shape, strict=True)
    )
    is_plain = is_whole and len(set(axes)) == len(axes) and tensor.value is None
    if not is_plain or not all(isinstance(index, Num) or index in axes for index in row.indices):
        return None
    return _Difference(
        tensor, tuple(index if isinstance(index, Num) else elements.indices.index(index) for index in row.indices)
    )


def _share(graph: Graph, difference: _Difference, row: Tensor, readers: Sequence[Block]) -> None:
    elements = difference.elements
    out = Tensor(f"{row.name}.differences", elements.shape, elements.dtype)
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(elements.shape))
    index: tuple[Expr, ...] = tuple(map(Index, axes))
    at = tuple(place if isinstance(place, Num) else index[place] for place in difference.places)
    first, *others = readers
    made = Block(first.origin, axes, out, index, Apply("add", (Load(elements, index), Load(row, at))))

    def changed(reader: Block) -> Block:
        expr = reader.expr
        for part in _sums(reader.expr, row):
            if _difference(part) == difference:
                assert isinstance(part.args[0], Load)
                expr = _replaced(expr, part, Load(out, part.args[0].indices))
        return reader.with_expr(expr)

    graph.replace(first, made, changed(first))
    for reader in others:
        graph.replace(reader, changed(reader))
