"""rotations: tensors that are another one with the elements of each head in another order, some with another sign.

Rotary embeddings multiply the halves of a head (or neighbours in it), exchanged and one of them negated, by sines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.moves import can_invert, covered_axes, inverse, moved_load, redirected
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Load, Num, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Heads:
    """The heads of `source`: along `dim`, `count` of `size` elements each, of which those from `first` on are used."""

    source: Tensor
    dim: int
    count: int
    size: int
    first: int
    width: int

    def first_of(self, width: int) -> int:
        """Where in a head such a part of it begins."""
        return self.first if width == self.width else 0


@dataclass(frozen=True)
class Roles:
    """The dimensions of a tensor of heads: that of the heads, of their `width` elements, and the source's others."""

    head: int
    element: int
    width: int
    others: Mapping[int, int]  # by the source's dimension; those of extent 1 are left out


@dataclass(frozen=True)
class Rotation:
    """result[head, element, ...] = the sum of matrix[other, element] * source[head * size + first + other, ...]."""

    result: Tensor
    heads: Heads
    roles: Roles
    matrix: NDArray[np.float32]  # [width, width], one of 1 and -1 in each column


def rotation(graph: Graph, tensor: Tensor) -> Rotation | None:
    """What the tensor is the rotation of; None if it is none, or not written in pieces."""
    pieces = _pieces(graph, tensor)
    if tensor.kind != "temp" or len(pieces) < 2:
        return None
    read = [_read(graph, piece) for piece in pieces]
    every = [part for part in read if part is not None]
    if len(every) < len(read):
        return None
    dims = range(len(every[0][0].tensor.shape))
    return next((found for dim in dims if (found := _along(tensor, pieces, every, dim))), None)


def _pieces(graph: Graph, tensor: Tensor) -> list[Block]:
    """What writes the tensor, or what writes another one that only has other dimensions, pairs of neighbours, say."""
    writers = graph.writers(tensor)
    load = moved_load(writers[0]) if len(writers) == 1 else None
    axes = covered_axes(load, writers[0]) if load else None
    if load is None or axes is None:
        return writers
    return [redirected(writer, load.tensor, axes, writers[0]) for writer in graph.writers(load.tensor)]


def _read(graph: Graph, block: Block) -> tuple[Load, float] | None:
    """What a block moves from where nothing was only moved, and the sign that it gives to it."""
    expr, sign = block.expr, 1.0
    if block.combine:
        return None
    while True:
        match expr:
            case Apply("multiply", (inner, Num(value))) if abs(value) == 1:
                expr, sign = inner, sign * value
            case Load(tensor, indices):
                further = moved_from(graph, tensor, indices)
                if further is None:
                    return (expr, sign) if tensor.value is None else None
                expr = further
            case _:
                return None


def moved_from(graph: Graph, tensor: Tensor, indices: tuple[Expr, ...]) -> Expr | None:
    """What is moved into this place of a tensor, perhaps with another sign."""
    writers = graph.writers(tensor)
    if tensor.kind != "temp" or len(writers) != 1 or writers[0].combine or not can_invert(writers[0]):
        return None
    match writers[0].expr:
        case Load() | Apply("multiply", (Load(), Num(1.0 | -1.0))):
            return replace_axes(writers[0].expr, inverse(writers[0], indices))
    return None


def _along(tensor: Tensor, pieces: Sequence[Block], read: Sequence[tuple[Load, float]], dim: int) -> Rotation | None:
    """The rotation of heads along a dimension of what the pieces read."""
    source, roles, size = read[0][0].tensor, None, 0
    places: list[tuple[NDArray[np.int64], NDArray[np.int64], float]] = []
    for piece, (load, sign) in zip(pieces, read, strict=True):
        maps, written = linear_indices(load.indices), linear_indices(piece.index)
        if load.tensor is not source or maps is None or written is None:
            return None
        found = _roles(written, maps, dim, tensor, source)
        if found is None or (roles is not None and roles != found):
            return None
        roles = found
        head = next(iter(written[roles.head].terms))
        size = maps[dim].terms[head]
        within = maps[dim].replaced(head, Linear())
        axes = list(dict.fromkeys([*within.terms, *written[roles.element].terms]))
        if set(axes) != set(within.terms) or set(axes) != set(written[roles.element].terms):
            return None
        shape = [axis.extent for axis in axes]
        ends = [np.broadcast_to(evaluate(m.expr(), axes), shape).ravel() for m in (within, written[roles.element])]
        places.append((ends[0], ends[1], sign))
    if roles is None:
        return None
    width, count = tensor.shape[roles.element], tensor.shape[roles.head]
    first = min(int(others.min()) for others, _, _ in places)
    last = max(int(others.max()) for others, _, _ in places)
    if last - first >= width or last >= size or size * count != source.shape[dim]:
        return None
    matrix = np.zeros((width, width), np.float32)
    for others, elements, sign in places:
        matrix[others - first, elements] = sign
    if (np.abs(matrix).sum(axis=0) != 1).any():
        return None
    return Rotation(tensor, Heads(source, dim, count, size, first, width), roles, matrix)


def _roles(written: Sequence[Linear], read: Sequence[Linear], dim: int, tensor: Tensor, source: Tensor) -> Roles | None:
    """The dimensions of the pieces, if the source's others are plain axes, and each head is `dim` of the source's."""
    owner = {axis: d for d, part in enumerate(written) for axis in part.terms}
    others: dict[int, int] = {}
    for other, part in enumerate(read):
        if other == dim or source.shape[other] == 1:
            continue
        axis = plain(part)
        if axis is None or axis not in owner or plain(written[owner[axis]]) is not axis:
            return None
        if not axis.extent == source.shape[other] == tensor.shape[owner[axis]]:
            return None
        others[other] = owner[axis]
    steps = read[dim].terms
    heads = list(dict.fromkeys(owner[axis] for axis in steps if axis in owner))
    if len(heads) != 2 or any(axis not in owner for axis in steps):
        return None
    for head, element in (heads, heads[::-1]):
        axis = plain(written[head])
        if axis is not None and axis.extent == tensor.shape[head] and steps[axis] * axis.extent == source.shape[dim]:
            return Roles(head, element, tensor.shape[element], others)
    return None


def plain(part: Linear) -> Axis | None:
    """The axis of an index that is nothing else."""
    ((axis, step),) = part.terms.items() if len(part.terms) == 1 else ((None, 0),)
    return axis if step == 1 and not part.const else None
