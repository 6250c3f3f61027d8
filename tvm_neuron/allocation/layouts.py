"""layouts: the strides of a tensor, or of a box of it, in SBUF and in DRAM, and the bytes it takes."""

from collections.abc import Sequence
from math import prod

from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.tiling import PARTITIONS

ALIGNMENT_BYTES = 64


def aligned(value: int) -> int:
    """The next multiple of the alignment of buffers."""
    return -(-value // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def on_chip(dtype: str, partition_dim: int, offset: int, origin: Sequence[int], shape: Sequence[int]) -> OnChip:
    """A box of a tensor, `shape` elements from `origin`, at byte `offset` of each partition."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(range(len(shape))):
        if dim != partition_dim:
            strides[dim] = step
            step *= shape[dim]
    return OnChip(dtype, partition_dim, offset, tuple(origin), tuple(strides), step)


def bytes_on_chip(dtype: str, partition_dim: int, shape: Sequence[int]) -> int:
    """Bytes that such a box takes in each partition."""
    free = prod(extent for dim, extent in enumerate(shape) if dim != partition_dim)
    chunks = -(-shape[partition_dim] // PARTITIONS) if shape else 1
    return aligned(free * chunks * size_bytes(dtype))


def dram_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a tensor whose dimensions lie in `order`, outermost first."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)
