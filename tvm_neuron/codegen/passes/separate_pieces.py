"""separate_pieces: what is put together, and read in the same pieces, stays apart: a tensor for what each block writes.

A detector concatenates the scores of all its maps, and looks for the best of each map's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.schedule.expr import Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import gathered
from tvm_neuron.schedule.tensor import Tensor

Box = tuple[tuple[int, int], ...]  # the first and the last position along each dimension


def separate_pieces(graph: Graph) -> None:
    """Gives each writer of a tensor one of its own, if all that readers read lies in what one of them writes."""
    for tensor in list(graph.tensors()):
        writers = graph.writers(tensor)
        if tensor.kind != "temp" or len(writers) < 2:
            continue
        boxes = [_box(block.index) for block in writers]
        found = _apart([box for box in boxes if box]) if all(boxes) else []
        if found and all(_reads_in_pieces(block, tensor, found) for block in graph.readers(tensor)):
            pieces = {box: _piece(tensor, box, number) for number, box in enumerate(found)}
            for block in dict.fromkeys([*writers, *graph.readers(tensor)]):
                graph.replace(block, _moved(block, tensor, pieces))


def _box(indices: tuple[Expr, ...]) -> Box | None:
    maps = linear_indices(indices)
    return tuple(part.span for part in maps) if maps is not None else None


def _apart(boxes: Sequence[Box]) -> list[Box]:
    """The boxes; none if any two of them overlap."""
    for number, box in enumerate(boxes):
        if any(all(map(_meet, box, other)) for other in boxes[:number]):
            return []
    return list(boxes)


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _around(inside: Box | None, boxes: Sequence[Box]) -> Box | None:
    """The box that the other lies in."""
    if inside is None:
        return None
    return next((box for box in boxes if all(map(_is_in, inside, box))), None)


def _is_in(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


def _reads_in_pieces(block: Block, tensor: Tensor, boxes: Sequence[Box]) -> bool:
    if gathered(block) is not None:
        return False
    return all(_around(_box(load.indices), boxes) for load in block.loads() if load.tensor is tensor)


def _piece(tensor: Tensor, box: Box, number: int) -> Tensor:
    return replace(tensor, name=f"{tensor.name}.piece{number}", shape=tuple(high - low + 1 for low, high in box))


def _moved(block: Block, tensor: Tensor, pieces: Mapping[Box, Tensor]) -> Block:
    def place(indices: tuple[Expr, ...]) -> tuple[Tensor, tuple[Expr, ...]]:
        box = _around(_box(indices), list(pieces))
        assert box is not None  # of all that reads and writes it
        moved = (part + Linear(-low) for part, (low, _) in zip(linear_indices(indices) or (), box, strict=True))
        return pieces[box], tuple(part.index() for part in moved)

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(*place(part.indices)) if isinstance(part, Load) and part.tensor is tensor else part

    if block.output is tensor:
        output, index = place(block.index)
        block = replace(block, output=output, index=index)
    return canonical(block.with_expr(rewrite(block.expr, leaf)))
