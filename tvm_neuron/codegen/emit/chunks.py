"""in_chunks: what lies on the partitions of several chunks as two axes: within a chunk, and from chunk to chunk.

The latter is a free axis like others, so that one instruction covers a few elements of many chunks: each instruction
keeps its engine for a hundred cycles and more beside those of its elements.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tvm_neuron.codegen.emit.positions import is_vector
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, axes_of, loads, replace_axes
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Product, Reduction, Root, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS, Segment


def in_chunks(kernel: Kernel, axis: Axis, run: Segment) -> tuple[Kernel, Axis, Axis]:
    """The kernel over a run of its channel, or of the row of its transposition; its axes within and over the chunks."""
    start, size, count = run
    lane, chunk = Axis(axis.name, size), Axis(f"{axis.name}.chunk", count)
    by = Linear(start, {chunk: PARTITIONS, lane: 1})

    def moved(maps: tuple[Linear, ...]) -> tuple[Linear, ...]:
        return tuple(part.replaced(axis, by) for part in maps)

    def operand(found: Operand) -> Operand:
        return Operand(found.tensor, moved(found.maps))

    root = kernel.root
    if isinstance(root, Transposition):
        root = replace(root, source=operand(root.source), row=lane if root.row is axis else root.row)
    elif isinstance(root, Product):
        root = replace(root, stationary=operand(root.stationary), moving=operand(root.moving))
    elif isinstance(root, Reduction):
        root = root.reading(lambda part: replace_axes(part, {axis: by.expr()}))
    places = {a: (chunk, lane) if a is axis else (a,) for a in kernel.free}
    free = tuple(part for a in kernel.free for part in places[a])
    is_channel = axis is kernel.channel
    return (
        replace(
            kernel, out_maps=moved(kernel.out_maps), channel=lane if is_channel else kernel.channel,
            free=(chunk, *free) if is_channel else free, expr=replace_axes(kernel.expr, {axis: by.expr()}), root=root,
        ),
        lane,
        chunk,
    )  # fmt: skip


def has_chunks(kernel: Kernel, axis: Axis, partition_of: Mapping[Tensor, int]) -> bool:
    """Whether all that the kernel addresses by the axis is on one side: on the partitions for the channel, for the row
    of a transposition the source's alone; of constants of several channels only vectors have a pattern over chunks."""
    if kernel.whole or _counts(kernel.expr, axis):
        return False
    constants = (load for load in loads(kernel.expr) if load is not ROOT and load.tensor.value is not None)
    if any(axis in axes_of(load) and not is_vector(load, kernel) for load in constants):
        return False
    is_channel = axis is kernel.channel
    for tensor, maps in _places(kernel):
        for dim, part in enumerate(maps):
            is_partition = dim == partition_of[tensor]
            if axis in part.terms and (is_partition != is_channel or (is_partition and part.terms[axis] != 1)):
                return False
    return True


def _places(kernel: Kernel) -> Iterator[tuple[Tensor, tuple[Linear, ...]]]:
    """What the kernel writes, and reads beside the source of a transposition's rows."""
    yield kernel.out, kernel.out_maps
    yield from ((load.tensor, linear_indices(load.indices) or ()) for load in kernel.operand_loads())
    root: Root | None = kernel.root
    if isinstance(root, Reduction):
        yield from ((load.tensor, linear_indices(load.indices) or ()) for load in root.loads)


def _counts(expr: Expr, axis: Axis) -> bool:
    """Whether the value of the axis itself is computed with."""
    if isinstance(expr, Apply):
        return any(_counts(arg, axis) for arg in expr.args)
    return isinstance(expr, Index) and expr.axis is axis
