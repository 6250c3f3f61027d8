"""image_rows: images of few channels that are computed before a convolution, as normalised ones, lie by rows.

With three channels on the partitions, 3 of 128 lanes compute, and nothing packs what lies there for the PE array. From
rows on the partitions it goes through device memory, from where windows are packed as those of an input are. So it is
with what is put together for a convolution: two images side by side, or one with a border that mirrors it.
"""

from collections.abc import Mapping

from tvm_neuron.codegen.kernels.pack import FEW_CHANNELS
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.schedule.expr import Axis, Expr, Load, Num
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.roles import data_factor, gathered, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor

_DIMS, _ROWS = 4, 2  # images, channels, rows, columns


def image_rows(graph: Graph) -> dict[Tensor, int]:
    """Such images, and the inputs that they are computed from, each with the dimension of its rows.

    None if nothing computes, or contractions do: what these make lies as they leave it.
    """
    found: dict[Tensor, int] = {}
    for block in graph.blocks:
        load = data_factor(block) if is_constant_contraction(block) else None
        if load is not None and len(load.tensor.shape) == _DIMS and load.tensor.shape[1] <= FEW_CHANNELS:
            images = _images(graph, load.tensor)
            is_of_input = any(image.kind == "input" for image in images)  # others are images inside a network
            if is_of_input and any(_is_made(graph, image) for image in images):
                found |= images
    return found


def _images(graph: Graph, last: Tensor) -> dict[Tensor, int]:
    """The tensor, if it is computed, and those of the same rows that it is computed or moved from."""
    found: dict[Tensor, int] = {}
    pending = [(last, _ROWS)]
    while pending:
        tensor, dim = pending.pop()
        writers = graph.writers(tensor)
        if tensor in found or any(block.combine or gathered(block) for block in writers):
            continue
        if tensor is not last or _is_made(graph, tensor):  # else the convolution's own, with a border of zeros
            found[tensor] = dim
        pending += [place for block in writers for place in _of_same_rows(block, dim)]
    return found


def _is_made(graph: Graph, tensor: Tensor) -> bool:
    """Whether it is computed, or of several parts, as one with a border that mirrors it: else it is moved alone."""
    writers = graph.writers(tensor)
    return any(not isinstance(block.expr, Load | Num) for block in writers) or sum(map(_moves, writers)) > 1


def _moves(block: Block) -> bool:
    return moved_load(block) is not None


def _of_same_rows(block: Block, dim: int) -> list[tuple[Tensor, int]]:
    """What a block reads row by row, and the dimension of the rows, where its own have dimension `dim`."""
    rows = _steps(block.index)[dim : dim + 1]
    found = []
    for load in block.loads() if rows and rows[0] else ():
        at = [d for d, steps in enumerate(_steps(load.indices)) if steps == rows[0]]
        if load.tensor.value is None and len(at) == 1:
            found.append((load.tensor, at[0]))
    return found


def _steps(indices: tuple[Expr, ...]) -> list[Mapping[Axis, int]]:
    """The axes of each dimension with their steps; none if it is no sum of axes."""
    return [part.terms for part in linear_indices(indices) or ()]
