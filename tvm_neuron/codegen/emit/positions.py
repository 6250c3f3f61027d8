"""positions: constants that change along free axes (a norm's scale along its rows, say), brought into SBUF.

What is the same in every partition comes from DRAM once; the PE array spreads it over the partitions, as a product with
ones. A float32 is the sum of three bfloat16, each with 8 of its 24 bits, so that the product is exact.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, Emitter
from tvm_neuron.hw import Device
from tvm_neuron.isa import Activation, Affine, Matmul, Memset, Tile
from tvm_neuron.schedule.expr import Index, Load, loads
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ACCUMULATOR, Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS, contiguous

PARTS = 3  # of a float32, as bfloat16
ITEM, PART_ITEM = 4, 2  # bytes of each
SMALL_ZONE_BYTES = 1 << 12
_Chunk = tuple[int, NDArray[np.float32]]
"""The byte of each partition from which on values [partitions, N] lie."""


def is_vector(load: Load, kernel: Kernel) -> bool:
    """Whether a constant has one value for each channel; such vectors stay in SBUF throughout."""
    return load.indices == (Index(kernel.channel),)


def is_vector_of_chunks(load: Load, kernel: Kernel) -> bool:
    """Whether such a vector is read by a kernel over several chunks of channels, see `in_chunks`."""
    if len(load.tensor.shape) != 1 or len(load.indices) != 1 or isinstance(load.indices[0], Index):
        return False
    found = linear_indices(load.indices)
    return found is not None and kernel.channel in found[0].terms and len(found[0].terms) > 1


def follows_channel(load: Load, kernel: Kernel) -> bool:
    """Whether the first index of the constant is the channel."""
    return bool(load.indices) and load.indices[0] == Index(kernel.channel)


def positional(kernel: Kernel) -> Iterator[Load]:
    """A load of each of the kernel's constants that change along free axes."""
    seen = set()
    for load in loads(kernel.expr):
        tensor = load.tensor
        is_constant = tensor is not ACCUMULATOR and tensor.value is not None
        if is_constant and tensor not in seen and not is_vector(load, kernel):
            seen.add(tensor)
            yield load


def positions_bytes(kernel: Kernel) -> int:
    """What the kernel's constants of this kind take of each partition, with the parts they are made from."""
    parts = [load.tensor.elems for load in positional(kernel) if not follows_channel(load, kernel)]
    return sum(_bytes(load, kernel) for load in positional(kernel)) + sum(aligned(n * PART_ITEM) for n in parts)


def zone_bytes(kernels: Sequence[Kernel]) -> int:
    """Room for the constants of any kernel, and for those of the next beside them if they are small."""
    most = max((positions_bytes(kernel) for kernel in kernels if not kernel.by_dma), default=0)
    return 2 * most if most <= SMALL_ZONE_BYTES else most


def load_positions(emitter: Emitter, kernel: Kernel) -> None:
    """Brings them in for the kernel that is emitted next, unless they are there from one before, as a tile's are."""
    key = tuple((load.tensor, follows_channel(load, kernel), kernel.channel.extent) for load in positional(kernel))
    ring, size = emitter.builder.positions, positions_bytes(kernel)
    found = ring.find(key)
    if found is None:
        at = ring.take(size)
        found = _bring(emitter, kernel, at)
        ring.hold(key, at, size, found)
    emitter.positions = found


def _bring(emitter: Emitter, kernel: Kernel, place: int) -> dict[Tensor, OnChip]:
    """Side by side, from byte `place` on: the ring may start again between two takes."""
    found: dict[Tensor, OnChip] = {}
    by_channel: list[_Chunk] = []
    for load in sorted(positional(kernel), key=lambda load: not follows_channel(load, kernel)):
        value = load.tensor.value
        assert value is not None
        follows = follows_channel(load, kernel)
        free = value.shape[1:] if follows else value.shape
        at, place = place, place + _bytes(load, kernel)
        strides = tuple(step for step, _ in contiguous(free))
        found[load.tensor] = OnChip(
            "float32", 0, at, (0,) * (1 + len(free)), (0, *strides), prod(free) if follows else 0
        )
        if follows:
            by_channel += _chunks(value.reshape(kernel.channel.extent, -1), at)
        else:
            _load_spread(emitter, kernel, value.ravel(), at, place)
            place += aligned(value.size * PART_ITEM)
    for first, rows in _in_rows(by_channel, emitter.device):
        emitter.bring_rows(f"{kernel.origins[0].name}.positions", rows, "float32", first, LOAD_QUEUE)
    return found


def _bytes(load: Load, kernel: Kernel) -> int:
    follows = follows_channel(load, kernel)
    chunks = -(-kernel.channel.extent // PARTITIONS) if follows else 1
    elems = load.tensor.elems // (kernel.channel.extent if follows else 1)
    return aligned(chunks * elems * ITEM)


def _chunks(value: NDArray[np.float32], at: int) -> Iterator[_Chunk]:
    """Of a table [channels, N], what lies on the partitions side by side, from byte `at` on."""
    for start in range(0, len(value), PARTITIONS):
        yield at + start // PARTITIONS * value.shape[1] * ITEM, value[start : start + PARTITIONS]


def _in_rows(chunks: Sequence[_Chunk], device: Device) -> Iterator[_Chunk]:
    """Those behind each other as one, as long as a descriptor takes no longer for the row than for a short one."""
    most = device.dma_descriptor_ns * device.dram_bytes_per_second // (device.dma_engines * 10**9)
    its: list[_Chunk] = []
    for at, values in chunks:
        if its and at + values.shape[1] * ITEM - its[0][0] > most:
            yield _beside(its)
            its = []
        its.append((at, values))
    if its:
        yield _beside(its)


def _beside(chunks: Sequence[_Chunk]) -> _Chunk:
    """All of them, zero where none has anything."""
    first, (last, values) = chunks[0][0], chunks[-1]
    columns = (last - first) // ITEM + values.shape[1]
    whole = np.zeros((max(len(values) for _, values in chunks), columns), np.float32)
    for at, values in chunks:
        start = (at - first) // ITEM
        whole[: len(values), start : start + values.shape[1]] = values
    return first, whole


def _load_spread(emitter: Emitter, kernel: Kernel, value: NDArray[np.float32], at: int, place: int) -> None:
    """[1, N] to [128, N]: ones[3, columns].T @ parts[3, N] (at byte `place`), copied to each group of partitions."""
    builder, device = emitter.builder, emitter.device
    columns, most = min(device.pe_columns, PARTITIONS), device.moving_max_elems
    emitter.bring_rows(f"{kernel.origins[0].name}.positions", split_float32(value), "bfloat16", place, LOAD_QUEUE)
    ones = Tile("sbuf", "bfloat16", Affine(), PARTS, Affine(builder.scratch.take(columns * PART_ITEM)), ((1, columns),))
    builder.emit(Memset(result=ones, value=1.0))
    for start in range(0, value.size, most):
        dims = ((1, min(most, value.size - start)),)
        moving = Tile("sbuf", "bfloat16", Affine(), PARTS, Affine(place + start * PART_ITEM), dims)
        psum = builder.psum_tile(columns, dims, ())
        builder.emit(Matmul(stationary=ones, moving=moving, psum=psum, first=()))
        for row in range(0, PARTITIONS, columns):
            result = Tile("sbuf", "float32", Affine(row), columns, Affine(at + start * ITEM), dims)
            builder.emit(Activation(result=result, source=psum, scale=1.0, bias=-0.0, function="copy"))


def split_float32(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """[3, N] numbers that bfloat16 holds and that add up to float32 `value` [N]; cut, so that none overflows."""
    parts = []
    rest = np.ascontiguousarray(value, np.float32)
    for _ in range(PARTS):
        part = (rest.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        parts.append(part)
        rest = np.subtract(rest, part, out=np.zeros_like(rest), where=np.isfinite(part))
    return np.stack(parts)
