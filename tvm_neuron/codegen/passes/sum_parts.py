"""sum_parts: images of few channels side by side as sums, where one begins at a partition that no engine writes.

A DMA would put them there, and nothing that goes by rows could go along with it. Each part instead becomes an image of
all channels, zeros but for its own, by the PE array: times ones, as what it is made from may be multiplied by weights.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.passes.by_array import Mixed
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import moved_load, plain_axes
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS

_DIMS = 4  # images, channels, rows, columns


def has_parts(graph: Graph) -> bool:
    """Whether there are such images."""
    mixed = Mixed(graph)
    return any(_is_of_parts(graph, tensor, mixed) for tensor in graph.tensors())


def sum_parts(graph: Graph) -> None:
    """Makes sums of all such images."""
    mixed = Mixed(graph)
    for tensor in [tensor for tensor in graph.tensors() if _is_of_parts(graph, tensor, mixed)]:
        _sum(graph, tensor)


def _is_of_parts(graph: Graph, tensor: Tensor, mixed: Mixed) -> bool:
    """Whether moves of whole images, of which all is finite, fill its channels, and engines can't do all of them."""
    parts = [block for block in graph.writers(tensor) if moved_load(block)]
    if tensor.kind != "temp" or len(tensor.shape) != _DIMS or not tensor.dtype.startswith("float") or len(parts) < 2:
        return False
    if 2 * tensor.shape[1] > PARTITIONS:
        return False
    filled, borders, is_by_engines = np.zeros(tensor.shape[1], np.int64), set(), True
    for part in parts:
        load, channels = moved_load(part), _channels(part)
        if load is None or channels is None or load.tensor.dtype != tensor.dtype or not mixed.holds(load.tensor):
            return False
        written = linear_indices(part.index) or ()
        borders.add(tuple((place.const, *(a.extent for a in place.terms)) for place in (written[0], *written[2:])))
        filled[channels] += 1
        is_by_engines &= channels[0] % PARTITION_START_STEP == 0 and channels[-1] - channels[0] < len(channels)
    return bool((filled == 1).all()) and len(borders) == 1 and not is_by_engines


def _channels(part: Block) -> NDArray[np.int64] | None:
    """To which channels those of a whole image are moved, in their order; None if anything else is moved."""
    load, written = moved_load(part), linear_indices(part.index)
    axes = plain_axes(load.indices) if load else None
    if load is None or axes is None or written is None or load.tensor.kind != "temp":
        return None
    if tuple(axis.extent if axis else 1 for axis in axes) != load.tensor.shape or len(axes) != _DIMS:
        return None
    if [dict(place.terms) for d, place in enumerate(written) if d != 1] != [
        {axis: 1} if axis else {} for d, axis in enumerate(axes) if d != 1
    ]:
        return None
    step = written[1].terms.get(axes[1], 0) if axes[1] else 0
    if set(written[1].terms) - {axes[1]}:
        return None
    return written[1].const + step * np.arange(load.tensor.shape[1])


def _sum(graph: Graph, tensor: Tensor) -> None:
    total: Tensor | None = None
    parts = [block for block in graph.writers(tensor) if moved_load(block)]
    for number, part in enumerate(parts):
        load, written, channels = moved_load(part), linear_indices(part.index), _channels(part)
        assert load is not None
        assert written is not None
        assert channels is not None
        shape = (load.tensor.shape[0], tensor.shape[1], *load.tensor.shape[2:])
        axes = tuple(Axis(f"a{d}", extent) for d, extent in enumerate(shape))
        index: tuple[Expr, ...] = tuple(map(Index, axes))
        depth = Axis("k", load.tensor.shape[1], is_reduction=True)
        ones = np.zeros((depth.extent, tensor.shape[1]), np.float32)
        ones[np.arange(depth.extent), channels] = 1
        matrix = Tensor("ones", ones.shape, "float32", value=ones)
        read = Load(load.tensor, (index[0], Index(depth), *index[2:]))
        expr = Apply("multiply", (read, Load(matrix, (Index(depth), Index(axes[1])))))
        made = Tensor(f"{tensor.name}.part{number}", shape, tensor.dtype)
        blocks = [Block(part.origin, (*axes, depth), made, index, expr, "add")]
        if total is not None:
            both = Apply("add", (Load(made, index), Load(total, index)))
            is_last = number == len(parts) - 1
            made = tensor if is_last else Tensor(f"{tensor.name}.to{number}", shape, tensor.dtype)
            blocks.append(Block(part.origin, axes, made, _placed(index, written) if is_last else index, both))
        total = made
        graph.replace(part, *map(canonical, blocks))


def _placed(index: Sequence[Expr], written: Sequence[Linear]) -> tuple[Expr, ...]:
    """Where a sum of all channels lies in the image: within its padding."""
    first, _, *rest = (place.const for place in written)
    return tuple(Apply("add", (i, Num(at))) for i, at in zip(index, (first, 0, *rest), strict=True))
