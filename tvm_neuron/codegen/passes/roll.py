"""rolled: blocks that do the same for one step of many each, as one block for all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def in_step(parts: Sequence[Expr], axis: Axis) -> Expr | None:
    """The expression that is each of the parts in turn as `axis` counts; None if there is none.

    Numbers are the same in all of them; elements of a tensor lie evenly apart along one dimension at most.
    """
    first = parts[0]
    if isinstance(first, Apply):
        alike = [part for part in parts if isinstance(part, Apply) and part.op == first.op]
        if len(alike) < len(parts) or len({len(part.args) for part in alike}) > 1:
            return None
        args = [in_step(each, axis) for each in zip(*(part.args for part in alike), strict=True)]
        found = tuple(arg for arg in args if arg is not None)
        return Apply(first.op, found) if len(found) == len(args) else None
    if not isinstance(first, Load):
        return first if all(part == first for part in parts) else None
    places = [_place(part, first.tensor) for part in parts]
    if any(place is None for place in places):
        return None
    steps = _even_steps([place for place in places if place is not None])
    if steps is None or sum(step != 0 for step in steps) > 1 or min(steps, default=0) < 0:
        return None
    start = places[0] or ()
    indices = [part + Linear(0, {axis: step} if step else {}) for part, step in zip(start, steps, strict=True)]
    return Load(first.tensor, tuple(part.expr() for part in indices))


def rolled(graph: Graph, tensors: Sequence[Tensor], whole: Tensor, dim: int) -> None:
    """Lets the readers of `tensors` read `whole`, which has them one after the other along its dimension `dim`.

    Readers that do the same for each of them become one; so do the readers of what those write.
    """
    number = {tensor: place for place, tensor in enumerate(tensors)}
    readers = dict.fromkeys(reader for tensor in tensors for reader in graph.readers(tensor))

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor not in number:
            return part
        return Load(whole, (*part.indices[:dim], Num(number[part.tensor]), *part.indices[dim:]))

    alike: dict[object, dict[int, list[Block]]] = {}
    for reader in readers:
        its = {number[load.tensor] for load in reader.loads() if load.tensor in number}
        changed = reader.with_expr(rewrite(reader.expr, leaf))
        graph.replace(reader, changed)
        if len(its) == 1:
            kind = changed.output, changed.combine, _form(changed.expr)
            alike.setdefault(kind, {}).setdefault(its.pop(), []).append(changed)
    for by_step in alike.values():
        family = [block for step in range(len(tensors)) for block in by_step.get(step, [])]
        if len(by_step) == len(family) == len(tensors):
            _roll(graph, family)


def _form(expr: Expr) -> object:
    """The operations and tensors of an expression, wherever it reads them."""
    if isinstance(expr, Apply):
        return expr.op, *map(_form, expr.args)
    return expr.tensor if isinstance(expr, Load) else expr


def _roll(graph: Graph, family: Sequence[Block]) -> None:
    """One block in the place of the first of those that do the same in each step, if they do."""
    first, axis = family[0], Axis("step", len(family))
    if len({(len(block.axes), block.combine, block.init) for block in family}) > 1:
        return
    pairs = [list(zip(block.axes, first.axes, strict=True)) for block in family]
    if any((mine.extent, mine.is_reduction) != (its.extent, its.is_reduction) for pair in pairs for mine, its in pair):
        return
    by: list[dict[Axis, Expr]] = [{mine: Index(its) for mine, its in pair} for pair in pairs]
    both = list(zip(family, by, strict=True))
    expr = in_step([replace_axes(block.expr, its) for block, its in both], axis)
    written = [replace_axes(Load(block.output, block.index), its) for block, its in both]
    order = {block: place for place, block in enumerate(graph.blocks)}
    read = {load.tensor for block in family for load in block.loads()}
    if expr is None or any(order[w] > order[first] for tensor in read for w in graph.writers(tensor)):
        return
    if isinstance(place := in_step(written, axis), Load):  # parts of one tensor
        axes = (*in_order((*first.spatial, axis), place.indices), *first.reduction)
        if all(part != written[0] for part in written[1:]):
            _replace(graph, family, replace(first, axes=axes, index=place.indices, expr=expr))


def in_order(axes: Iterable[Axis], index: Sequence[Expr]) -> tuple[Axis, ...]:
    """The axes as they count the dimensions of what is written there, so that elements lie side by side."""
    place = {axis: dim for dim, part in enumerate(index) for axis in axes_of(part)}
    return tuple(sorted(axes, key=lambda axis: place.get(axis, 0)))


def _replace(graph: Graph, family: Sequence[Block], block: Block) -> None:
    graph.replace(family[0], block)
    for other in family[1:]:
        graph.replace(other)


def _place(part: Expr, tensor: Tensor) -> tuple[Linear, ...] | None:
    return linear_indices(part.indices) if isinstance(part, Load) and part.tensor is tensor else None


def _even_steps(places: Sequence[tuple[Linear, ...]]) -> list[int] | None:
    """By dimension how far each place is from the one before; None where they differ otherwise."""
    found: list[int] = []
    for dim in zip(*places, strict=True):
        steps = {after.const - before.const for before, after in pairwise(dim)}
        if len(steps) > 1 or any(part.terms != dim[0].terms for part in dim):
            return None
        found += steps or {0}
    return found
