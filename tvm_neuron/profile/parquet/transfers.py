"""Tables of the DMA: DmaPacket, DmaPacketAggregated, DmaQueuesInfo, TensorInfo."""

from collections import Counter
from typing import Any

import numpy as np

from tvm_neuron.isa import DramTile, Instruction, Tile
from tvm_neuron.profile.parquet.chunk import IS_DMA, Chunk, span, texts
from tvm_neuron.profile.parquet.instructions import tile_bytes
from tvm_neuron.profile.recording import Recording
from tvm_neuron.profile.run import CoreRun
from tvm_neuron.program.dynamic import affine_at


def dma_packet_aggregated(core: CoreRun, first_id: int) -> Chunk:
    """One row for each transfer."""
    one = core.recording
    common, rows = _common(core)
    number, statics = one.dynamic.number[rows], one.dynamic.statics
    found: dict[str, Any] = {
        **common,
        "id": first_id + rows,
        "op": texts([each.mnemonic for each in statics], number),
        "semaphore_id": common["queue_name"],
    }
    for side in ("read", "write"):
        tiles = [_side(each, side) for each in statics]
        spaces = ["dram" if isinstance(tile, DramTile) else tile.space for tile in tiles]
        found["source" if side == "read" else "dest"] = texts(spaces, number)
        found[f"{side}_shape"] = texts([_dims(tile.shape) for tile in tiles], number)
        found[f"{side}_steps"] = texts([_dims([step for step, _ in tile.dims]) for tile in tiles], number)
        offset, first = np.zeros(len(one.dynamic), np.int64), np.zeros(len(one.dynamic), np.int64)
        for tile, mine in zip(tiles, one.dynamic.rows(), strict=True):
            offset[mine] = affine_at(tile.offset, one.dynamic.index[mine])
            if isinstance(tile, Tile):
                first[mine] = affine_at(tile.partition, one.dynamic.index[mine])
        counts = np.array([tile.partitions if isinstance(tile, Tile) else 0 for tile in tiles], np.int64)[number]
        found[f"{side}_offset"] = [str(at) for at in offset[rows].tolist()]
        found[f"{side}_num_sbuf_partitions"] = counts
        found[f"{side}_sbuf_partitions"] = [
            f"{at}-{at + count - 1}" if count else ""
            for at, count in zip(first[rows].tolist(), counts.tolist(), strict=True)
        ]
    return found


def dma_packet(core: CoreRun, first_id: int) -> Chunk:
    """The same as packets: the model times a transfer as one."""
    common, rows = _common(core)
    return {
        **common,
        "id": first_id + rows,
        "packet_idx": np.zeros(len(rows), np.int64),
        "packet_aggregation_id": first_id + rows,
    }


def dma_queues_info(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each queue that carries something."""
    one = core.recording
    carried: dict[str, Counter[str]] = {}
    rows = np.flatnonzero(IS_DMA[one.dynamic.queue])
    for number, times in enumerate(np.bincount(one.dynamic.number[rows], minlength=len(one.dynamic.statics)).tolist()):
        each = one.dynamic.statics[number]
        if times:
            carried.setdefault(each.queue, Counter())[kind_in_dram(one, each)] += times * transfer_bytes(each)
    names = sorted(carried)
    return {
        "name": names,
        "type": [carried[name].most_common(1)[0][0] for name in names],
        "pcore_idx": [core.core] * len(names),
        "idx": [int(name.removeprefix("dma")) for name in names],
    }


def tensor_info(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each tensor in device memory."""
    one = core.recording
    tensors = one.neff.program.tensors
    loaded, count = [0] * len(tensors), [0] * len(tensors)
    times = np.bincount(one.dynamic.number, minlength=len(one.dynamic.statics)).tolist()
    for each, often in zip(one.dynamic.statics, times, strict=True):
        for _, kind, tile in each.tiles():
            if isinstance(tile, DramTile) and kind.role == "reads" and isinstance(each.destination, Tile):
                loaded[tile.tensor] += often * each.moved_bytes(tile)
                count[tile.tensor] += often
    return {
        "variable_name": [tensor.name for tensor in tensors],
        "type": [tensor.kind for tensor in tensors],
        "format": [tensor.dtype for tensor in tensors],
        "shape": [_dims(tensor.shape) for tensor in tensors],
        "size": [tensor.size_bytes for tensor in tensors],
        "pcore_idx": [core.core] * len(tensors),
        "load_to_sbuf_total_size_bytes": loaded,
        "load_to_sbuf_avg_size_bytes": [size // max(often, 1) for size, often in zip(loaded, count, strict=True)],
        "load_to_sbuf_dma_count": count,
        "load_to_sbuf_repeat_factor": [
            size / tensor.size_bytes for size, tensor in zip(loaded, tensors, strict=True)
        ],
    }


def transfer_bytes(one: Instruction) -> int:
    """What a transfer carries: the larger of what it reads and writes."""
    return max(tile_bytes(one.destination), tile_bytes(_side(one, "read")) if not _gathers(one) else 0)


def _common(core: CoreRun) -> tuple[dict[str, Any], Any]:
    """The columns of every table of transfers, and the transfers."""
    one = core.recording
    rows = np.flatnonzero(IS_DMA[one.dynamic.queue])
    number, statics = one.dynamic.number[rows], one.dynamic.statics
    written = [tile_bytes(each.destination) for each in statics]
    read = [
        size if _gathers(each) else tile_bytes(_side(each, "read"))
        for each, size in zip(statics, written, strict=True)
    ]
    carried = np.maximum(np.array(read, np.int64), np.array(written, np.int64))[number]
    lasting = np.maximum(one.clock.end[rows] - one.clock.start[rows], 1) / 1e12
    names = texts([each.queue for each in statics], number)
    return {
        **span(core, rows),
        "read_bytes": np.array(read, np.int64)[number],
        "write_bytes": np.array(written, np.int64)[number],
        "transfer_bytes": carried,
        "throughput": carried / lasting,
        "queue_type": texts([kind_in_dram(one, each) for each in statics], number),
        "variable": texts([_variable(one, each) for each in statics], number),
        "queue_name": names,
        "queue_idx": [int(name.removeprefix("dma")) for name in names],
    }, rows


def _side(one: Instruction, side: str) -> Tile | DramTile:
    """The tile that an instruction writes, or the first that it reads (what it writes, if it reads none)."""
    if side == "write":
        return one.destination
    return next((tile for _, kind, tile in one.tiles() if kind.role == "reads"), one.destination)


def _gathers(one: Instruction) -> bool:
    """Whether it chooses from what it reads."""
    return one.mnemonic == "dma_gather"


def _in_dram(recording: Recording, one: Instruction) -> Any:
    return next((recording.neff.program.tensors[t.tensor] for _, _, t in one.tiles() if isinstance(t, DramTile)), None)


def kind_in_dram(recording: Recording, one: Instruction) -> str:
    """What a transfer's tensor in DRAM is: "input", "output", "weight", "scratch"; "" if it stays on the core."""
    tensor = _in_dram(recording, one)
    return tensor.kind if tensor else ""


def _variable(recording: Recording, one: Instruction) -> str:
    tensor = _in_dram(recording, one)
    return tensor.name if tensor else ""


def _dims(numbers: Any) -> str:
    return "x".join(map(str, numbers))
