"""transfer_image: a tensor that crosses the border between two cores as SBUF has it, one long row for each partition.

In the order of the model, each channel would be a row of its own, often shorter than a DMA descriptor is worth.
"""

from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, LONG_ROW_BYTES, STORE_QUEUE, TRANSFER_PARTS, Emitter
from tvm_neuron.isa import DmaCopy, DramTile, Tile, affine
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def transfer_image(emitter: Emitter, tensor: Tensor, is_load: bool) -> None:
    """Brings the tensor in from its image, or out to it, in parts: work on one needn't wait for all.

    Where the tensor is in DRAM by plan, that is from one order there to the other.
    """
    plan = emitter.plan
    channels = tensor.shape[plan.partition_of[tensor]]
    chunks, elems = channels // PARTITIONS, tensor.elems // channels
    index, row = emitter.images[tensor], chunks * elems
    step = -(-chunks // max(1, min(TRANSFER_PARTS, row * size_bytes(plan.dtypes[tensor]) // LONG_ROW_BYTES)))
    for low in range(0, chunks, step):
        count, at = min(step, chunks - low), low * elems
        here: Tile | DramTile
        if tensor in plan.in_dram:
            dram = emitter.dram[tensor]
            by_chunk = ((elems, PARTITIONS), (elems * PARTITIONS, count), (1, elems))
            here = DramTile(dram.index, dram.dtype, affine(at * PARTITIONS), by_chunk)
            image = DramTile(index, dram.dtype, affine(at), ((row, PARTITIONS), (elems, count), (1, elems)))
        else:
            chip = plan.resident(tensor)
            offset = affine(chip.offset + at * size_bytes(chip.dtype))
            here = Tile("sbuf", chip.dtype, affine(0), PARTITIONS, offset, ((1, count * elems),))
            image = DramTile(index, chip.dtype, affine(at), ((row, PARTITIONS), (1, count * elems)))
        target, source, queue = (here, image, emitter.queue(LOAD_QUEUE)) if is_load else (image, here, STORE_QUEUE)
        emitter.builder.emit(DmaCopy(target=target, source=source, ring=queue))
