"""attribute: which model operator each instant of a run belongs to, so that the operators' times add up to the whole.

The rule: an instant belongs to the operator whose instruction the PE array is busy with; while the array is idle, to
that of the next engine in the order of reports, and at last to that of the transfer on the DRAM. While nothing is busy,
it belongs to the operator whose instruction starts next, and after the last one has started, to the one that ends last.
"""

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.engines import BY_QUEUE, IN_REPORTS, QUEUES
from tvm_neuron.program import Program
from tvm_neuron.program.dynamic import Dynamic
from tvm_neuron.sim.clock import Clock

Ints = NDArray[np.int64]


def wall_ps_by_origin(program: Program, dynamic: Dynamic, clock: Clock) -> Ints:
    """Picoseconds of each origin of `program`, whose instructions ran by `clock`; their sum is the run's whole time."""
    engine_of = np.array([IN_REPORTS.index(BY_QUEUE[queue].name) for queue in QUEUES])
    origin_of = np.array([instruction.origin for instruction in dynamic.statics], np.int64)
    owners = attribute(clock.start, clock.end, engine_of[dynamic.queue], origin_of[dynamic.number], clock.total)
    wall = np.zeros(len(program.origins), np.int64)
    np.add.at(wall, owners[1], owners[0])
    return wall


def attribute(start: Ints, end: Ints, engine: Ints, origin: Ints, total: int) -> tuple[Ints, Ints]:
    """(lengths, origins) of consecutive intervals that fill [0, total].

    Instruction i keeps the engine of priority `engine[i]` (0 first) busy over [start[i], end[i]); the instructions of
    one engine don't overlap, and those that last no time own none.
    """
    lasting = end > start
    start, end, engine, origin = start[lasting], end[lasting], engine[lasting], origin[lasting]
    if not len(start):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    edges = np.unique(np.concatenate([np.array([0, total]), start, end]))
    edges = edges[edges <= total]
    left, lengths = edges[:-1], np.diff(edges)
    by_start = np.argsort(start, kind="stable")
    following = np.searchsorted(start[by_start], left, "left")
    owner = np.full(len(left), origin[np.argmax(end)])
    has_next = following < len(start)
    owner[has_next] = origin[by_start[following[has_next]]]
    for code in range(len(IN_REPORTS) - 1, -1, -1):
        mine = by_start[engine[by_start] == code]
        latest = np.searchsorted(start[mine], left, "right") - 1
        is_busy = latest >= 0
        is_busy[is_busy] = end[mine[latest[is_busy]]] > left[is_busy]
        owner[is_busy] = origin[mine[latest[is_busy]]]
    return lengths, owner
