"""softmax_of: blocks that divide exponentials by the sums of their rows, and make 0 of what is no number then."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from tvm_neuron.codegen.passes.moves import can_invert, inverse
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Load, Num, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor

_LARGEST = 2.0**128 - 2.0**104  # of float32


@dataclass(frozen=True)
class Softmax:
    """What a block makes: an exponential over the total of its row, and 0 in place of NaN.

    `blocks` are those that it takes, itself last, without what makes exponentials and totals.
    """

    exponential: Load
    total: Load
    blocks: tuple[Block, ...]


def softmax_of(graph: Graph, block: Block) -> Softmax | None:
    """The guarded softmax that a block makes, where nothing else reads what is on the way; None for any other block."""
    pair = _guarded(graph, block)
    if pair is None:
        return None
    test, source = pair
    writers = graph.writers(source.tensor)
    if len(writers) != 1 or source.tensor.kind != "temp" or not can_invert(writers[0]):
        return None
    if {*graph.readers(source.tensor)} != {test, block}:
        return None
    quotient = _quotient(graph, writers[0])
    if quotient is None:
        return None
    return seen_from(Softmax(*quotient, (writers[0], test, block)), writers[0], source.indices)


def seen_from(softmax: Softmax, block: Block, indices: Sequence[Expr]) -> Softmax:
    """The same in the axes of a reader, which reads what the block makes at these indices."""
    by = inverse(block, tuple(indices))
    exponential, total = (
        Load(load.tensor, tuple(replace_axes(index, by) for index in load.indices))
        for load in (softmax.exponential, softmax.total)
    )
    return replace(softmax, exponential=exponential, total=total)


def divide_by_row(graph: Graph, softmax: Softmax, value: Expr) -> tuple[list[Block], Expr]:
    """`value` over the total, or 0 where that is no number above 0; before it, what to make for that.

    All elements of a row are NaN together: quotients by other totals are 0 or NaN. Divided by the largest number, a
    total leaves itself, but NaN if infinite: so one instruction tells.
    """
    (sums,) = graph.writers(softmax.total.tensor)
    load = Load(sums.output, sums.index)
    inverted = _of_each(sums, "inverse", Apply("divide", (Num(1.0), load)))
    finite = _of_each(sums, "finite", Apply("is_gt", (Apply("mod", (load, Num(_LARGEST))), Num(0.0))))
    factor, is_finite = (replace(softmax.total, tensor=block.output) for block in (inverted, finite))
    return [inverted, finite], Apply("select", (is_finite, Apply("multiply", (value, factor)), Num(0.0)))


def _of_each(sums: Block, name: str, expr: Expr) -> Block:
    output = Tensor(f"{sums.output.name}.{name}", sums.output.shape, "float32")
    return replace(sums, axes=sums.spatial, output=output, expr=expr, combine="", init=0.0)


def _guarded(graph: Graph, block: Block) -> tuple[Block, Load] | None:
    """What a block makes 0 of the NaN of, and the block that asks where there are any, for it alone."""
    match block.expr:
        case Apply("select", (Apply("is_lt", (Num(0), Load() as truth)), Load() as zero, Load() as source)):
            tests = graph.writers(truth.tensor)
        case _:
            return None
    value = zero.tensor.value
    if value is None or value.size != 1 or value.item() != 0 or truth.tensor.kind != "temp":
        return None
    if len(tests) != 1 or not can_invert(tests[0]) or graph.readers(truth.tensor) != [block]:
        return None
    match tests[0].expr:
        case Apply("not", (Apply("is_le", (Load(tensor, indices), Num(limit))),)) if limit == inf:
            by = inverse(tests[0], truth.indices)
            here = linear_indices(tuple(replace_axes(index, by) for index in indices))
            is_its = tensor is source.tensor and here == linear_indices(source.indices)
            return (tests[0], source) if is_its else None
    return None


def _quotient(graph: Graph, block: Block) -> tuple[Load, Load] | None:
    """The exponential and the total of its row whose quotient a block makes, and nothing else of that total."""
    match block.expr:
        case Apply("divide", (Load() as exponential, Load() as total)) if not block.combine:
            made, sums = graph.writers(exponential.tensor), graph.writers(total.tensor)
        case _:
            return None
    if len(made) != 1 or len(sums) != 1 or not can_invert(sums[0]) or graph.readers(total.tensor) != [block]:
        return None
    is_positive = not made[0].combine and isinstance(made[0].expr, Apply) and made[0].expr.op == "exp"
    summed = sums[0].expr
    if not is_positive or sums[0].combine != "add" or sums[0].init or not isinstance(summed, Load):
        return None
    is_its = summed.tensor is exponential.tensor and _is_of_row(sums[0], summed, total, exponential)
    return (exponential, total) if is_its else None


def _is_of_row(sums: Block, summed: Load, total: Load, element: Load) -> bool:
    """Whether the total is of all elements along some dimensions, in the place of this element along the others."""
    by: dict[Axis, Expr] = inverse(sums, total.indices)
    there = linear_indices(tuple(replace_axes(index, by) for index in summed.indices))
    here = linear_indices(element.indices)
    if there is None or here is None:
        return False
    for part, own, extent in zip(there, here, element.tensor.shape, strict=True):
        long = [axis for axis in part.terms if axis.extent > 1]
        if any(axis.is_reduction for axis in long):
            if part.const or len(long) > 1 or long[0].extent != extent or part.terms[long[0]] != 1:
                return False
        elif part != own:
            return False
    return True
