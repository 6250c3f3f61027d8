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
from tvm_neuron.isa import Activation, Affine, DmaCopy, DramTile, Matmul, Memset, Tile
from tvm_neuron.schedule.expr import Index, Load, loads
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ACCUMULATOR, Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS, contiguous

PARTS = 3  # of a float32, as bfloat16
ITEM, PART_ITEM = 4, 2  # bytes of each
SMALL_ZONE_BYTES = 1 << 12


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
    for load in positional(kernel):
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
            _load_chunks(emitter, kernel, value, at)
        else:
            _load_spread(emitter, kernel, value.ravel(), at, place)
            place += aligned(value.size * PART_ITEM)
    return found


def _bytes(load: Load, kernel: Kernel) -> int:
    follows = follows_channel(load, kernel)
    chunks = -(-kernel.channel.extent // PARTITIONS) if follows else 1
    elems = load.tensor.elems // (kernel.channel.extent if follows else 1)
    return aligned(chunks * elems * ITEM)


def _load_chunks(emitter: Emitter, kernel: Kernel, value: NDArray[np.float32], at: int) -> None:
    builder, elems = emitter.builder, prod(value.shape[1:])
    index = builder.add_weight(f"{kernel.origins[0].name}.positions", value, "float32")
    for start in range(0, kernel.channel.extent, PARTITIONS):
        rows = min(PARTITIONS, kernel.channel.extent - start)
        offset = Affine(at + start // PARTITIONS * elems * ITEM)
        target = Tile("sbuf", "float32", Affine(), rows, offset, ((1, elems),))
        source = DramTile(index, "float32", Affine(start * elems), ((elems, rows), (1, elems)))
        builder.emit(DmaCopy(target=target, source=source, ring=LOAD_QUEUE))


def _load_spread(emitter: Emitter, kernel: Kernel, value: NDArray[np.float32], at: int, place: int) -> None:
    """[1, N] to [128, N]: ones[3, columns].T @ parts[3, N] (at byte `place`), copied to each group of partitions."""
    builder, device = emitter.builder, emitter.device
    columns, most = min(device.pe_columns, PARTITIONS), device.moving_max_elems
    index = builder.add_weight(f"{kernel.origins[0].name}.positions", split_float32(value), "bfloat16")
    parts = Tile("sbuf", "bfloat16", Affine(), PARTS, Affine(place), ((1, value.size),))
    source = DramTile(index, "bfloat16", Affine(), ((value.size, PARTS), (1, value.size)))
    builder.emit(DmaCopy(target=parts, source=source, ring=LOAD_QUEUE))
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
