"""Tables of memories: SbufUsage, SbufAllocation, PsumUsage, HbmUsage, DmaUsage."""

import numpy as np

from tvm_neuron.hw import Device
from tvm_neuron.profile.counters import Floats, count, spread
from tvm_neuron.profile.lives import Life, summed
from tvm_neuron.profile.parquet.chunk import IS_DMA, Chunk, ns
from tvm_neuron.profile.parquet.instructions import operands
from tvm_neuron.profile.parquet.transfers import transfer_bytes
from tvm_neuron.profile.recording import Ints
from tvm_neuron.profile.run import CoreRun
from tvm_neuron.program.cells import GROUP

Steps = tuple[Ints, Ints]


def sbuf_usage(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each time at which it changes."""
    device, lives = core.recording.neff.device, core.recording.lives
    groups = {
        f"partition_{GROUP * group}_util_percent": lives.taken("sbuf", group)
        for group in range(device.partitions // GROUP)
    }
    return _usage(core, "sbuf", groups, GROUP * device.sbuf_bytes_per_partition, device.sbuf_bytes)


def psum_usage(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each time at which it changes."""
    device = core.recording.neff.device
    changes = [one for one in core.recording.lives.changes if one.life.place == "psum"]
    banks = {
        f"bank_{bank}_util_percent": summed(
            (one.ps, int(one.bytes * share)) for one in changes if (share := _share(one.life, bank, device))
        )
        for bank in range(device.psum_banks)
    }
    return _usage(
        core, "psum", banks, device.partitions * device.psum_bank_bytes,
        device.partitions * device.psum_bytes_per_partition,
    )  # fmt: skip


def _share(life: Life, bank: int, device: Device) -> float:
    """How much of what it takes lies in a bank of PSUM."""
    low, high = bank * device.psum_bank_bytes, (bank + 1) * device.psum_bank_bytes
    return max(0, min(high, life.high) - max(low, life.low)) / (life.high - life.low)


def _usage(core: CoreRun, place: str, parts: dict[str, Steps], part_bytes: int, total_bytes: int) -> Chunk:
    whole = core.recording.lives.taken(place)
    times = whole[0]
    return {
        "timestamp": ns(core, times),
        "avg_util_percent": 100 * whole[1] / total_bytes,
        **{name: 100 * _at(steps, times) / part_bytes for name, steps in parts.items()},
        "pcore_idx": np.full(len(times), core.core),
    }


def _at(steps: Steps, times: Ints) -> Ints:
    """The value of a step function at some times; 0 before its first."""
    return np.append(np.int64(0), steps[1])[np.searchsorted(steps[0], times, "right")]


def sbuf_allocation(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each group of 32 partitions of what an instruction wrote."""
    one = core.recording
    rows = [(life, group) for life in one.lives.lives if life.place == "sbuf" for group in life.groups]
    tensors, origins = one.neff.program.tensors, one.neff.program.origins
    return {
        "start_ts": ns(core, np.array([life.start_ps for life, _ in rows], np.int64)),
        "end_ts": ns(core, np.array([life.end_ps for life, _ in rows], np.int64)),
        "start_address": [life.low for life, _ in rows],
        "end_address": [life.high for life, _ in rows],
        "partition": [group * GROUP for _, group in rows],
        "op_source_type": [
            "loading" if life.row < 0 else "dma" if life.writer.engine == "dma" else "instruction" for life, _ in rows
        ],
        "opcode": [life.writer.mnemonic for life, _ in rows],
        "operands": [operands(life.writer) for life, _ in rows],
        "queue_name": [life.writer.queue for life, _ in rows],
        "tensor_name": [tensors[life.loaded].name if life.loaded >= 0 else "" for life, _ in rows],
        "hlo_name": [origins[life.writer.origin].name for life, _ in rows],
        "pcore_idx": [core.core] * len(rows),
    }


def hbm_usage(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each window."""
    counters = count(core.recording)
    return _windows(core, counters.edges_ps, counters.dram_bytes)


def dma_usage(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each window."""
    one = core.recording
    edges = count(one).edges_ps
    carries = IS_DMA[one.dynamic.queue]
    sizes = np.array([transfer_bytes(each) for each in one.dynamic.statics], np.int64)[one.dynamic.number[carries]]
    return _windows(core, edges, spread(one.clock.start[carries], one.clock.end[carries], sizes, edges))


def _windows(core: CoreRun, edges: Ints, moved: Floats) -> Chunk:
    return {
        "timestamp": ns(core, edges[:-1]),
        "current_throughput": moved * 1e12 / np.diff(edges),
        "total_transfer_bytes": np.cumsum(moved).round().astype(np.int64),
        "pcore_idx": np.full(len(moved), core.core),
    }
