"""Windows that a kernel describes itself: by a pattern of its own, by places in a tile, as bytes of another dtype."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.view import Axis, View


def by_pattern(view: View, pattern: Sequence[tuple[int, int]], offset: int) -> View:
    """The elements that (step, count) pairs choose, counted through all of the view's tensor from `offset` on.

    Raises:
        KernelError: they lie outside of it, or a pair after the first leaves the partition.
    """
    tensor, row = view.tensor, view.tensor.elems
    whole = row * tensor.partitions
    reach = [step * (count - 1) for step, count in pattern]
    first, last = offset + sum(min(each, 0) for each in reach), offset + sum(max(each, 0) for each in reach)
    what = f"pattern {[list(pair) for pair in pattern]} from {offset} of {view}"
    if tensor.blocks > 1 or first < 0 or last >= whole or not pattern or any(count < 1 for _, count in pattern):
        raise wrong(f"{what} chooses elements {first} to {last} of a tensor of {whole}: stay inside, in one tile")
    if tensor.memory == "hbm":
        return view.like((0, 0, offset), [((0, 0, step), count) for step, count in pattern])
    (step, count), *free = pattern
    if step % row or offset % row + sum(reach[1:]) >= row:
        raise wrong(
            f"{what}: a partition has {row} elements; the first step is a multiple of that, the others stay inside it"
        )
    start = (0, offset // row, offset % row)
    return view.like(start, [((0, step // row, 0), count), *(((0, 0, by), size) for by, size in free)])


def whole(view: View) -> View:
    """All of the view's tensor, on chip as [partitions, elements]."""
    tensor = view.tensor
    axes: list[Axis] = [((0, 0, 1), tensor.elems)]
    return view.like((0, 0, 0), axes if tensor.memory == "hbm" else [((0, 1, 0), tensor.partitions), *axes])


def retyped(view: View, dtype: str) -> View:
    """The bytes of a tile as elements of another dtype; its last axis gets as many more or fewer.

    Raises:
        KernelError: they lie in device memory, or not together.
    """
    tensor = view.tensor
    have, want = size_bytes(tensor.dtype), size_bytes(dtype)
    if dtype == tensor.dtype:
        return view
    vectors = [view.start, *(step for step, _ in view.axes[:-1])]
    (last, count) = view.axes[-1] if view.axes else ((0, 0, 0), 0)
    are_whole = all(vector[2] * have % want == 0 for vector in vectors) and count * have % want == 0
    if tensor.memory == "hbm" or last != (0, 0, 1) or not are_whole:
        raise wrong(
            f"the bytes of {view}, which is {tensor.dtype}, as {dtype}: the model takes whole elements that lie "
            "together in a tile on chip: copy it"
        )
    moved = [(block, partition, elem * have // want) for block, partition, elem in vectors]
    other = type(view)(replace(tensor, dtype=dtype, elems=tensor.elems * have // want), view.start, view.axes)
    axes = [(step, size) for step, (_, size) in zip(moved[1:], view.axes[:-1], strict=True)]
    return other.like(moved[0], [*axes, ((0, 0, 1), count * have // want)])


@dataclass(frozen=True)
class Chosen:
    """Elements of a tensor in device memory of which a tile says where they lie along one of its axes.

    `rows` are those at place 0, `positions` the places, both of one shape; a place further is `step` elements on, and
    there are `count` of them.
    """

    rows: View
    positions: View
    step: int
    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the elements."""
        return self.rows.shape

    @property
    def dtype(self) -> Any:
        """Of the elements."""
        return self.rows.dtype

    def __str__(self) -> str:
        return f"{self.rows} at places known at run time"


def chosen(view: View, axis: int, rows: View, positions: Any) -> Chosen:
    """`rows` of `view`, moved along one of its axes by as much as `positions`, a tile [P, 1], says.

    Raises:
        KernelError: `view` is on chip, or the positions are of another shape.
    """
    if view.tensor.memory != "hbm" or not isinstance(positions, View) or positions.tensor.memory == "hbm":
        raise wrong(f"{view} at places in {positions}: a tile says them, of elements in device memory")
    (_, _, step), count = view.axes[axis]
    rank = max(rows.ndim, positions.ndim)
    if rank > positions.ndim:
        positions = positions.fitted((positions.shape[0], *(1,) * (rank - 1)))
    shape = tuple(max(pair) for pair in zip(rows.padded(rank).shape, positions.shape, strict=True))
    return Chosen(rows.widened(shape), positions.widened(shape), step, count)
