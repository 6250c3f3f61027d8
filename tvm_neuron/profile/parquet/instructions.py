"""Tables of what engines do: Instruction, OpcodeSummary, SemaphoreUpdate, Flow."""

from math import prod

import numpy as np

from tvm_neuron.isa import QUEUES, DramTile, Instruction, Matmul, Tile, Transpose
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.profile.parquet.chunk import ENGINES, IS_DMA, Chunk, ns, span, table_of, texts
from tvm_neuron.profile.run import CoreRun

_TYPES = {Matmul: "matmul", Transpose: "transpose"}


def instruction(core: CoreRun, first_id: int) -> Chunk:
    """One row for each instruction of an engine, as often as it runs."""
    one = core.recording
    rows = np.flatnonzero(~IS_DMA[one.dynamic.queue])
    number, statics = one.dynamic.number[rows], one.dynamic.statics
    origins = one.neff.program.origins
    waited = one.clock.waited[rows] // 1000
    why = one.clock.why[rows]
    fixed: dict[str, list[int]] = {}
    for each in statics:
        for name, size in moved_bytes(each).items():
            fixed.setdefault(name, []).append(size)
    return {
        **span(core, rows),
        "engine": texts([ENGINES.get(each.engine, "") for each in statics], number),
        "timeline_track": texts([each.queue for each in statics], number),
        "opcode": texts([each.mnemonic for each in statics], number),
        "operands": texts([operands(each) for each in statics], number),
        "id": first_id + rows,
        "pc": number,
        "layer": texts([origins[each.origin].name for each in statics], number),
        "evt_wait_time_ns": waited,
        "dma_wait_time_ns": np.where((why >= 0) & np.append(IS_DMA, [False, False])[why], waited, 0),
        **{name: np.array(sizes, np.int64)[number] for name, sizes in fixed.items()},
        "tensor_instruction_type": texts([_TYPES.get(type(each), "") for each in statics], number),
        "raw_flops": 2 * one.cost_of("macs")[rows],
        "scalar_activation_fn": texts([getattr(each, "function", "") for each in statics], number),
    }


def moved_bytes(one: Instruction) -> dict[str, int]:
    """What an instruction reads and writes of the core's memories; nothing on what lies in DRAM."""
    found = dict.fromkeys(("sbuf_read_bytes", "sbuf_write_bytes", "psum_read_bytes", "psum_write_bytes"), 0)
    for _, kind, tile in one.tiles():
        if not isinstance(tile, DramTile):
            found[f"{tile.space}_{'read' if kind.role == 'reads' else 'write'}_bytes"] += tile_bytes(tile)
    return found | {"psum_read_sbuf_write_bytes": found["psum_read_bytes"] if found["sbuf_write_bytes"] else 0}


def tile_bytes(tile: Tile | DramTile) -> int:
    """The bytes of a tile's elements."""
    return prod(tile.shape) * size_bytes(tile.dtype)


def operands(one: Instruction) -> str:
    """All operands as in the disassembly."""
    return " ".join(f"{name}={kind.print(getattr(one, name))}" for name, kind in one.kinds())


def semaphore_update(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each completion, in order of time."""
    one = core.recording
    rows = np.argsort(one.clock.done, kind="stable")
    count = len(rows)
    return {
        "timestamp": ns(core, one.clock.done[rows]),
        "id": texts(QUEUES, one.dynamic.queue[rows].astype(np.int32)),
        "value": one.dynamic.position[rows] + 1,
        "update_source": texts([each.mnemonic for each in one.dynamic.statics], one.dynamic.number[rows]),
        "update_operation_type": ["increment"] * count,
        "pcore_idx": np.full(count, core.core),
    }


def flow(core: CoreRun, first_id: int) -> Chunk:
    """One row for each arrow of a timeline."""
    arrows = list(core.recording.arrows())
    clock = core.recording.clock
    return {
        "in_id": [first_id + arrow.source for arrow in arrows],
        "out_id": [first_id + arrow.target for arrow in arrows],
        "in_table": [table_of(core, arrow.source) for arrow in arrows],
        "out_table": [table_of(core, arrow.target) for arrow in arrows],
        "dependency_type": [arrow.kind for arrow in arrows],
        "gap_time": [int(clock.start[arrow.target] - clock.done[arrow.source]) // 1000 for arrow in arrows],
    }


def opcode_summary(core: CoreRun, _first_id: int) -> Chunk:
    """One row for each instruction that an engine or the DMA runs."""
    one = core.recording
    names = [(ENGINES.get(each.engine, "DMA"), each.mnemonic) for each in one.dynamic.statics]
    kinds = sorted(set(names))
    kind = np.array([kinds.index(name) for name in names], np.int64)[one.dynamic.number]
    busy = np.bincount(kind, one.clock.end - one.clock.start, len(kinds)) / 1000
    return {
        "engine": [engine for engine, _ in kinds],
        "opcode": [opcode for _, opcode in kinds],
        "instruction_count": np.bincount(kind, minlength=len(kinds)),
        "instruction_time_ns": busy.astype(np.int64),
        "active_time_ns": busy.astype(np.int64),  # those of one engine don't overlap, nor do transfers
        "active_time_percent": 1e5 * busy / max(one.clock.total, 1),
    }
