"""group_of: what kernels that are to run in tiles make, bring in from DRAM and leave behind."""

from collections.abc import Iterable, Mapping, Sequence, Set
from math import prod

from tvm_neuron.codegen.kernels.bounce import permutes_partitions
from tvm_neuron.codegen.tiles.rows import Group, channels
from tvm_neuron.codegen.tiles.tiled_dims import has_whole_rows, tiled_dims
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.kernel import Contraction, Kernel, Product
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import writers_of


def group_of(
    kernels: tuple[Kernel, ...], dim: int, before: Iterable[Kernel], after: set[Tensor], in_dram: set[Tensor],
    partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str],
) -> Group | None:  # fmt: skip
    """The group whose results, what it makes that is in `after` or an output, are cut along `dim`; None if it can't be.

    Outputs that have those rows one behind the other in their last dimension are cut along that.
    """
    made = {kernel.out for kernel in kernels}
    results = frozenset(t for t in made if t in after or t.kind == "output")
    if not all(_is_cut(t, dim, partition_of) or _may_be_cut_last(t, dim, partition_of) for t in results):
        return None  # as most that are asked for
    writers = writers_of(kernels)
    found = {tensor: _cut_dim(tensor, dim, writers[tensor], partition_of) for tensor in results}
    cut = {tensor: d for tensor, d in found.items() if d is not None}
    if not results or len(cut) < len(results) or _multiplies_otherwise(kernels, made, dtypes):
        return None
    if any(_is_single(channels(writers[tensor], d)) for tensor, d in cut.items()):
        return None
    spans = {tensor: channels(writers[tensor], d) for tensor, d in cut.items() if d != dim}
    dims = tiled_dims(kernels, partition_of, cut)
    if dims is None or any(tensor not in dims for tensor in made):
        return None
    local = {t for t in made if t not in results or t in in_dram}
    if not all(dims[t] == 0 or _has_all_images(t, writers[t], partition_of[t]) for t in local):
        return None
    begun = _begun(local - spans.keys(), before, partition_of)
    brought = _brought(kernels, made, results, dims, in_dram)
    read_as = _read_as(kernels, brought - made, dtypes)
    if read_as is None or not set(begun) <= in_dram or _permutes(kernels, in_dram - brought - local, partition_of):
        return None
    return Group(kernels, dims, results, brought, partition_of, read_as, begun, spans)


def stationary_bytes(kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> int:
    """Bytes of each partition that the kernels' weights take."""
    total = 0
    for kernel in kernels:
        root = kernel.root
        if isinstance(root, Contraction):
            first = root.maps[partition_of[root.data]].const % PARTITIONS
            depth = -(-(first + root.weights.shape[0]) // PARTITIONS)
            total += depth * prod(root.weights.shape[1:]) * size_bytes(root.dtype)
    return total


def _is_cut(tensor: Tensor, dim: int, partition_of: Mapping[Tensor, int]) -> bool:
    """Whether the dimension can be cut: rows (or images) of which there are several, whose elements lie together."""
    return dim < len(tensor.shape) - 1 and tensor.shape[dim] > 1 and partition_of[tensor] != dim


def _cut_dim(tensor: Tensor, dim: int, writers: Sequence[Kernel], partition_of: Mapping[Tensor, int]) -> int | None:
    """`dim`, or the last dimension of an output to which a kernel brings rows one behind the other; None for neither.

    Images are no rows, and what DMA stores may lie otherwise in SBUF than a part of the output would.
    """
    last = len(tensor.shape) - 1
    if _is_cut(tensor, dim, partition_of):
        return dim
    if not _may_be_cut_last(tensor, dim, partition_of) or len(writers) > 1:
        return None
    return last if not writers[0].by_dma and has_whole_rows(writers[0].out_maps[last]) else None


def _may_be_cut_last(tensor: Tensor, dim: int, partition_of: Mapping[Tensor, int]) -> bool:
    return dim != 0 and tensor.kind == "output" and partition_of[tensor] != len(tensor.shape) - 1


def _is_single(span: tuple[int, int]) -> bool:
    return span[1] - span[0] == 1


def _has_all_images(tensor: Tensor, writers: Sequence[Kernel], partition_dim: int) -> bool:
    """Whether the kernels write all of the first dimension, as they do not if they are for one image of several."""
    return partition_dim == 0 or channels(writers, 0) == (0, tensor.shape[0])


def _multiplies_otherwise(kernels: Sequence[Kernel], made: Set[Tensor], dtypes: Mapping[Tensor, str]) -> bool:
    """Whether the PE array multiplies what they make in another dtype than that has, as an output may have.

    Its tiles would have the dtype of the whole; what comes from DRAM as a whole can be read as another.
    """
    pairs = ((t, k.root.dtype) for k in kernels if isinstance(k.root, Contraction | Product) for t in k.multiplied())
    return any(tensor in made and dtypes[tensor] != dtype for tensor, dtype in pairs)


def _begun(
    made: set[Tensor], before: Iterable[Kernel], partition_of: Mapping[Tensor, int]
) -> dict[Tensor, tuple[int, int]]:
    """The channels that kernels before the group wrote of tensors of which it writes others."""
    writers = writers_of(kernel for kernel in before if kernel.out in made)
    return {tensor: channels(found, partition_of[tensor]) for tensor, found in writers.items()}


def _brought(
    kernels: Sequence[Kernel], made: set[Tensor], results: Set[Tensor], dims: Mapping[Tensor, int],
    in_dram: set[Tensor],
) -> frozenset[Tensor]:  # fmt: skip
    """Tensors in DRAM that engines read, and those that DMA, fills and copies of themselves make from there alone."""
    read = {t for k in kernels if not k.by_dma for t in k.sources()}
    found = {t for t in read if t in in_dram and t not in made and t in dims}
    writers = writers_of(kernels)
    for tensor in made - results:
        its = writers[tensor]
        sources = {t for k in its for t in k.sources()} - {tensor}
        if sources and sources <= in_dram - made and all(k.by_dma or {tensor}.issuperset(k.sources()) for k in its):
            found.add(tensor)
    return frozenset(found)


def _permutes(kernels: Sequence[Kernel], in_dram: Set[Tensor], partition_of: Mapping[Tensor, int]) -> bool:
    """Whether a move to a tile would permute partitions, as it may only from tensors that stay in DRAM."""
    moves = ((k, k.expr) for k in kernels if k.by_dma and not k.root)
    return any(
        isinstance(load, Load) and load.tensor not in in_dram and permutes_partitions(kernel, load, partition_of, True)
        for kernel, load in moves
    )


def _read_as(
    kernels: Sequence[Kernel], brought: frozenset[Tensor], dtypes: Mapping[Tensor, str]
) -> dict[Tensor, str] | None:
    """The dtypes with those as which the PE array reads what comes from DRAM; None if it is not the only reader."""
    found = dict(dtypes)
    for tensor in brought:
        wanted = {
            k.root.dtype if isinstance(k.root, Contraction | Product) and tensor in k.multiplied() else dtypes[tensor]
            for k in kernels
            if tensor in k.sources()
        }
        if len(wanted) > 1:
            return None
        found[tensor] = wanted.pop()
    return found
