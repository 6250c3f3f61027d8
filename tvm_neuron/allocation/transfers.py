"""box_cycles: how long DMA takes to bring a box of a tensor from device memory, or there."""

from collections.abc import Sequence
from math import prod

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def box_cycles(
    tensor: Tensor, shape: Sequence[int], partition_dim: int, dtype: str, stage_dtype: str, device: Device
) -> int:
    """Cycles of the DMA for a box of `shape` elements, `dtype` in device memory and `stage_dtype` in SBUF.

    What crosses the border lies in device memory as the model has it, all else by partitions first.
    """
    order = list(range(len(shape)))
    if tensor.kind not in ("input", "output"):
        order.sort(key=lambda d: (d != partition_dim, d))
    strides = dram_strides(tensor.shape, order)
    rows = min(shape[partition_dim], PARTITIONS)
    inside = [d for d in range(len(shape)) if d != partition_dim]
    beside = tuple((prod(shape[e] for e in inside if e > d), shape[d]) for d in inside)
    dram = DramTile(0, dtype, Affine(), ((strides[partition_dim], rows), *((strides[d], shape[d]) for d in inside)))
    chip = Tile("sbuf", stage_dtype, Affine(), rows, Affine(), beside)
    chunks = -(-shape[partition_dim] // PARTITIONS)
    return chunks * DmaCopy(target=chip, source=dram, ring=0).cost(device).busy_cycles
