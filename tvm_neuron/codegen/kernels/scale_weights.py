"""scale_weights: factors of channels known only at run time multiply a contraction's weights instead of its data.

Squeeze-and-excite multiplies an image by one factor for each channel before a convolution. There are far fewer weights
than elements of the image; and what rounds the scaled weights errs as much as what rounds a scaled image.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm_neuron.codegen.emit.scale_group import bytes_when_scaled
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Apply, Load
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Kernel, Operand
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import readers_of, writers_of

_MOST_SHARE = 32  # 1 / this of SBUF at most, for scaled weights


@dataclass(frozen=True)
class _Scaling:
    """A kernel that multiplies `data` by `factor`, a value for each channel."""

    kernel: Kernel
    data: Tensor
    factor: Operand


def scale_weights(
    kernels: list[Kernel], partition_of: Mapping[Tensor, int], precisions: Precisions, device: Device
) -> list[Kernel]:
    """The kernels; their weights are multiplied by factors instead of their data where that is quicker.

    Not in float16: factors may take its weights out of its range, though their products with the data were in it.
    """
    writers, readers = writers_of(kernels), readers_of(kernels)
    changed: dict[Kernel, Kernel | None] = {}
    for kernel in kernels:
        found = _scaling(kernel, partition_of)
        if found is None or len(writers[kernel.out]) > 1:
            continue
        moved = [_scaled(reader, found, partition_of) for reader in readers.get(kernel.out, [])]
        scaled = [reader for reader in moved if reader is not None]
        kept = {precisions.of(writer.origins[-1].name).dtype_of(found.data.dtype) for writer in writers[found.data]}
        if moved == scaled and _is_quicker(kernel, scaled, device) and kept == {_root(r).dtype for r in scaled}:
            changed |= dict(zip(readers[kernel.out], scaled, strict=True)) | {kernel: None}
    new = (changed.get(kernel, kernel) for kernel in kernels)
    return [kernel for kernel in new if kernel is not None]


def _scaling(kernel: Kernel, partition_of: Mapping[Tensor, int]) -> _Scaling | None:
    match kernel.expr:
        case Apply("multiply", (Load() as left, Load() as right)) if kernel.root is None and not kernel.by_dma:
            for data, factor in ((left, right), (right, left)):
                if _is_same(data, kernel, partition_of) and (by := _factor(factor, kernel, partition_of)):
                    return _Scaling(kernel, data.tensor, by)
    return None


def _is_same(load: Load, kernel: Kernel, partition_of: Mapping[Tensor, int]) -> bool:
    """Whether all of a tensor is read, each element for that of the same place."""
    tensor, out = load.tensor, kernel.out
    alike = (tensor.shape, tensor.dtype, partition_of.get(tensor)) == (out.shape, out.dtype, partition_of[out])
    is_temp = tensor.kind == out.kind == "temp" and tensor.value is None and not (tensor.is_spread or out.is_spread)
    elems = kernel.channel.extent * prod(axis.extent for axis in kernel.free)
    return is_temp and alike and elems == out.elems and linear_indices(load.indices) == kernel.out_maps


def _factor(load: Load, kernel: Kernel, partition_of: Mapping[Tensor, int]) -> Operand | None:
    """What the load reads, without the channel, if that is a value for each channel."""
    maps = linear_indices(load.indices)
    if maps is None or load.tensor.value is not None or load.tensor.dtype != kernel.out.dtype:
        return None
    dim = partition_of[load.tensor]
    if maps[dim] != Linear(0, {kernel.channel: 1}) or any(part.terms for d, part in enumerate(maps) if d != dim):
        return None
    return Operand(load.tensor, tuple(Linear(0) if d == dim else part for d, part in enumerate(maps)))


def _scaled(reader: Kernel, found: _Scaling, partition_of: Mapping[Tensor, int]) -> Kernel | None:
    """The reader on the data as they were before, with scaled weights."""
    root, out = reader.root, found.kernel.out
    if not isinstance(root, Contraction) or root.data is not out or root.scale or root.dtype == "float16":
        return None
    first = root.maps[partition_of[out]].const
    if first % PARTITIONS or any(load.tensor is out for load in reader.operand_loads()):
        return None
    dim = partition_of[found.factor.tensor]
    maps = tuple(Linear(first) if d == dim else part for d, part in enumerate(found.factor.maps))
    origins = (*reader.origins, *(origin for origin in found.kernel.origins if origin not in reader.origins))
    return replace(
        reader, origins=origins, root=replace(root, data=found.data, scale=Operand(found.factor.tensor, maps))
    )


def _is_quicker(kernel: Kernel, readers: Sequence[Kernel], device: Device) -> bool:
    """Whether there is room for scaled weights, and making them takes fewer cycles than multiplying the data does."""
    least, chunks = device.elementwise_min_cycles, -(-kernel.channel.extent // PARTITIONS)
    scaling = 0
    for reader in readers:
        root = _root(reader)
        scaling += -(-root.weights.shape[0] // PARTITIONS) * max(least, prod(root.weights.shape[1:]))
        if bytes_when_scaled(root) > device.sbuf_bytes_per_partition // _MOST_SHARE:
            return False
    return scaling < chunks * max(least, prod(axis.extent for axis in kernel.free))


def _root(kernel: Kernel) -> Contraction:
    assert isinstance(kernel.root, Contraction)
    return kernel.root
