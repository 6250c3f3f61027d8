"""slice_tensors: tensors of which kernels touch separate ranges, as a tensor for each range.

Heads of an attention need their own channels of queries, keys and values alone, and a part of a long sum needs its own
channels of what is summed. Made one after the other, and freed, they never lie in SBUF together.
"""

from collections.abc import Mapping, Sequence

from tvm_neuron.allocation.regions import box, source_maps, whole
from tvm_neuron.codegen.kernels.channels import channels_of, has_plain_constants
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import users_of

Range = tuple[int, int]  # [low, high) of a dimension


def slice_tensors(
    kernels: Sequence[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str]
) -> tuple[list[Kernel], set[Kernel]]:
    """The kernels, those that made several slices cut to make one each; and which of them may come when first needed.

    Adds the slices to `partition_of` and `dtypes`.
    """
    became = {kernel: [kernel] for kernel in kernels}
    touching = users_of(kernels)
    late: set[Kernel] = set()
    for tensor in reversed([tensor for tensor in touching if tensor.kind == "temp"]):
        now = [part for kernel in touching[tensor] for part in became[kernel]]
        found = _sliced(tensor, now, partition_of, dtypes)
        if not found:
            continue
        for kernel in touching[tensor]:
            became[kernel] = [part for old in became[kernel] for part in found[old]]
        late = {part for old in late for part in found.get(old, [old])}
        makers = [kernel for kernel in now if kernel.out is tensor]
        if not any(tensor in kernel.sources() for kernel in makers):  # sums that are added to come in their order
            late |= {part for kernel in makers for part in found[kernel]}
    return [part for kernel in kernels for part in became[kernel]], late


def _sliced(
    tensor: Tensor, touching: Sequence[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str]
) -> dict[Kernel, list[Kernel]]:
    """What each kernel that touches the tensor becomes where that is cut along some dimension; empty if it can't be."""
    if any(kernel.by_dma for kernel in touching):
        return {}
    for dim in range(len(tensor.shape)):
        ranges = _ranges(tensor, dim, touching, partition_of)
        cut = {k: _cut(k, dim, ranges) if k.out is tensor else [k] for k in touching} if len(ranges) > 1 else {}
        parts = [part for own in cut.values() for part in own]
        place = {part: _range(part, tensor, dim, ranges, partition_of) for part in parts}
        if not cut or not all(cut.values()) or not all(place.values()):
            continue
        rows = {own: Rows(_slice(tensor, dim, own), dim, own[0]) for own in ranges}
        partition_of |= {part.tensor: partition_of[tensor] for part in rows.values()}
        dtypes |= {part.tensor: dtypes[tensor] for part in rows.values()}
        moved = {part: restrict(part, None, 0, 0, {tensor: rows[own]}) for part, own in place.items() if own}
        return {kernel: [moved[part] for part in own] for kernel, own in cut.items()}
    return {}


def _slice(tensor: Tensor, dim: int, own: Range) -> Tensor:
    shape = tuple(own[1] - own[0] if d == dim else extent for d, extent in enumerate(tensor.shape))
    return Tensor(f"{tensor.name}.from{own[0]}", shape, tensor.dtype)


def _ranges(
    tensor: Tensor, dim: int, touching: Sequence[Kernel], partition_of: Mapping[Tensor, int]
) -> list[Range]:
    """The separate ranges of whole chunks that kernels read, which together are all of the dimension; else none."""
    read = sorted(
        span for kernel in touching if tensor in kernel.sources() for span in _read(kernel, tensor, dim, partition_of)
    )
    ranges: list[Range] = []
    for low, high in read:
        if ranges and low < ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(high, ranges[-1][1])
        else:
            ranges.append((low, high))
    ends = [0, *(high for _, high in ranges)]
    is_whole = [low for low, _ in ranges] == ends[:-1] and ends[-1] == tensor.shape[dim]
    return ranges if is_whole and not any(end % PARTITIONS for end in ends) else []


def _read(kernel: Kernel, tensor: Tensor, dim: int, partition_of: Mapping[Tensor, int]) -> list[Range]:
    """What the kernel reads of the dimension, from the first to the last; all of it where that isn't known."""
    every = source_maps(kernel, tensor, partition_of[tensor])
    if not all(every) or not every:
        return [(0, tensor.shape[dim])]
    boxes = [box(maps, whole(kernel)) for maps in every]
    return [(min(at[dim] for at, _ in boxes), max(at[dim] + shape[dim] for at, shape in boxes))]


def _range(
    kernel: Kernel, tensor: Tensor, dim: int, ranges: Sequence[Range], partition_of: Mapping[Tensor, int]
) -> Range | None:
    """The range that holds all that the kernel touches."""
    touched = _read(kernel, tensor, dim, partition_of) if tensor in kernel.sources() else []
    touched += [_made(kernel, dim)] if kernel.out is tensor else []
    return next((own for own in ranges if all(own[0] <= low and high <= own[1] for low, high in touched)), None)


def _made(kernel: Kernel, dim: int) -> Range:
    origin, shape = box(kernel.out_maps, whole(kernel))
    return origin[dim], origin[dim] + shape[dim]


def _cut(kernel: Kernel, dim: int, ranges: Sequence[Range]) -> list[Kernel]:
    """The kernel in parts that make one range each; none where it can't be cut like that."""
    low, high = _made(kernel, dim)
    own = [(max(low, first), min(high, end)) for first, end in ranges if first < high and low < end]
    if len(own) == 1:
        return [kernel]
    part: Linear = kernel.out_maps[dim]
    axis, step = next(iter(part.terms.items()))
    if len(part.terms) > 1 or step != 1 or low % PARTITIONS or axis in kernel.whole:
        return []
    if axis is not kernel.channel:
        return [restrict(kernel, axis, first - low, end - low, {}) for first, end in own]
    is_plain = isinstance(kernel.root, Contraction | None) and has_plain_constants(kernel)
    return [channels_of(kernel, first - low, end - first) for first, end in own] if is_plain else []
