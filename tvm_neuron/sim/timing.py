"""time_program: the modelled time of a program on a device, from each instruction's own cost."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Cost
from tvm_neuron.isa.engines import IN_REPORTS
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import Dynamic, expand
from tvm_neuron.program.traffic import dram_traffic
from tvm_neuron.sim.clock import PS_PER_SECOND, Clock, run_clock
from tvm_neuron.sim.result import Event, OriginTiming, Timing

REASONS = (*QUEUES, "dma", "own result")  # in the order of a clock's stalls


def time_program(program: Program, device: Device) -> Timing:
    """What one run takes. It doesn't depend on data, so once per program is enough.

    >>> from tvm_neuron import hw, program, sim
    >>> text = 'tensor 0 input "x" 4x8 float32\\ntensor 1 output "y" 4x8 float32\\norigin 0 Identity "copy"\\n'
    >>> text += "dma_copy target=dram.float32{t=1;at=0;dims=1*32} source=dram.float32{t=0;at=0;dims=1*32} "
    >>> text += "ring=0 origin=0"
    >>> timing = sim.time_program(program.parse_program(text), hw.load_device("inf2"))
    >>> timing.dram_bytes, timing.instructions
    (256, 1)

    Raises:
        ProgramError: the program deadlocks.
    """
    return clocked(program, device)[0]


def clocked(program: Program, device: Device) -> tuple[Timing, Dynamic, Clock]:
    """The same with what it is made from: all instructions, and when each of them starts and ends.

    Raises:
        ProgramError: the program deadlocks.
    """
    dynamic = expand(program)
    costs = [instruction.cost(device) for instruction in dynamic.statics]
    clock = run_clock(program, device, dynamic, costs)
    return _summary(program, device, dynamic, costs, clock), dynamic, clock


def trace_program(program: Program, device: Device) -> list[Event]:
    """When each dynamic instruction keeps its engine busy, in program order.

    Raises:
        ProgramError: the program deadlocks.
    """
    dynamic = expand(program)
    clock = run_clock(program, device, dynamic, [instruction.cost(device) for instruction in dynamic.statics])
    names = [program.origins[instruction.origin].name for instruction in dynamic.statics]
    return [
        Event(dynamic.statics[number].queue, start, end, dynamic.statics[number].mnemonic, names[number])
        for number, start, end in zip(dynamic.number.tolist(), clock.start.tolist(), clock.end.tolist(), strict=True)
    ]


def _summary(program: Program, device: Device, dynamic: Dynamic, costs: Sequence[Cost], clock: Clock) -> Timing:
    times = np.bincount(dynamic.number, minlength=len(dynamic.statics))
    macs = sum(cost.macs * int(count) for cost, count in zip(costs, times, strict=True))
    busy = np.bincount(dynamic.queue, clock.end - clock.start, len(QUEUES)).astype(np.int64)
    read, written, by_kind = _dram_bytes(program)
    return Timing(
        total_ps=clock.total,
        cycles=round(clock.total * device.pe_clock_hz / PS_PER_SECOND),
        busy_ps={queue: int(busy[code]) for code, queue in enumerate(QUEUES) if busy[code]},
        stalls_ps=_stalls(clock),
        origins=_origins(dynamic, clock),
        instructions=len(dynamic),
        macs=macs,
        dram_read_bytes=read,
        dram_written_bytes=written,
        dram_bytes_by_kind=by_kind,
    )


def _stalls(clock: Clock) -> dict[str, dict[str, int]]:
    stalls = {
        queue: {reason: ps for reason, ps in zip(REASONS, clock.stalls[code], strict=True) if ps}
        for code, queue in enumerate(QUEUES)
    }
    return {queue: reasons for queue, reasons in stalls.items() if reasons}


def _origins(dynamic: Dynamic, clock: Clock) -> Mapping[int, OriginTiming]:
    if not len(dynamic):
        return {}
    origin = np.array([instruction.origin for instruction in dynamic.statics])[dynamic.number]
    engine = np.array([IN_REPORTS.index(instruction.engine) for instruction in dynamic.statics])[dynamic.number]
    size = int(origin.max()) + 1
    busy = np.zeros((size, len(IN_REPORTS)), np.int64)
    np.add.at(busy, (origin, engine), clock.end - clock.start)
    start = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(start, origin, clock.start)
    end = np.zeros(size, np.int64)
    np.maximum.at(end, origin, clock.end)
    return {
        number: OriginTiming(_by_engine(busy[number]), int(start[number]), int(end[number]))
        for number in np.flatnonzero(np.bincount(origin)).tolist()
    }


def _by_engine(busy: NDArray[np.int64]) -> dict[str, int]:
    return {engine: int(ps) for engine, ps in zip(IN_REPORTS, busy, strict=True) if ps}


def _dram_bytes(program: Program) -> tuple[int, int, Mapping[str, int]]:
    """(bytes read, bytes written, bytes both ways by kind of tensor)."""
    by_role, by_kind = Counter[str](), Counter[str]()
    for tensor, role, moved in dram_traffic(program):
        by_role[role] += moved
        by_kind[program.tensors[tensor].kind] += moved
    return by_role["reads"], by_role["writes"], dict(by_kind)
