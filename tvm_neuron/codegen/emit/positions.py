"""positions: constants that change along free axes (the divisors of a padded average, say), brought into SBUF."""

import numpy as np

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, Emitter
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.schedule.expr import Index, Load, loads
from tvm_neuron.schedule.kernel import ACCUMULATOR, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS, contiguous


def is_vector(load: Load, kernel: Kernel) -> bool:
    """Whether a constant has one value for each channel; such vectors stay in SBUF throughout."""
    return load.indices == (Index(kernel.channel),)


def load_positions(emitter: Emitter, kernel: Kernel) -> None:
    """Loads the kernel's other constants: the same in every partition, unless they follow the channel too."""
    emitter.positions.clear()
    for load in loads(kernel.expr):
        tensor = load.tensor
        is_constant = tensor is not ACCUMULATOR and tensor.value is not None
        if is_constant and tensor not in emitter.positions and not is_vector(load, kernel):
            _load(emitter, kernel, load)


def _load(emitter: Emitter, kernel: Kernel, load: Load) -> None:
    """Storage with the channel as dimension 0, which a constant without one shares between all chunks."""
    value, builder = load.tensor.value, emitter.builder
    assert value is not None
    follows = follows_channel(load, kernel)
    free = value.shape[1:] if follows else value.shape
    chunks = -(-kernel.channel.extent // PARTITIONS) if follows else 1
    elems = int(np.prod(free, dtype=np.int64))
    at = builder.weights.take(aligned(chunks * elems * 4))
    strides = tuple(step for step, _ in contiguous(free))
    emitter.positions[load.tensor] = OnChip(
        "float32", 0, at, (0,) * (1 + len(free)), (0, *strides), elems if follows else 0
    )
    index = builder.add_weight(f"{kernel.origins[0].name}.positions", value, "float32")
    step = elems if follows else 0
    for chunk in range(chunks):
        rows = min(PARTITIONS, kernel.channel.extent - chunk * PARTITIONS) if follows else PARTITIONS
        target = Tile("sbuf", "float32", Affine(), rows, Affine(at + chunk * elems * 4), ((1, elems),))
        source = DramTile(index, "float32", Affine(chunk * PARTITIONS * step), ((step, rows), (1, elems)))
        builder.emit(DmaCopy(target=target, source=source, ring=LOAD_QUEUE))


def follows_channel(load: Load, kernel: Kernel) -> bool:
    """Whether the first index of the constant is the channel."""
    return bool(load.indices) and load.indices[0] == Index(kernel.channel)
