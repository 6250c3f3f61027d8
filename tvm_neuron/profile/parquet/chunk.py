"""Chunk: the rows that one core adds to a table; and the columns that several tables have."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.engines import BY_NAME, COMPUTE, QUEUES, of_dma
from tvm_neuron.profile.recording import Ints
from tvm_neuron.profile.run import CoreRun

Chunk = Mapping[str, Sequence[Any] | NDArray[Any]]
ENGINES = {name: BY_NAME[name].title for name in COMPUTE}
_PS_PER_NS = 1000
IS_DMA = np.array([of_dma(queue) for queue in QUEUES])


def ns(core: CoreRun, ps: Ints) -> Ints:
    """Times on a core as nanoseconds from the begin of the run, rounded down."""
    return (ps + core.begin_ps) // _PS_PER_NS


def span(core: CoreRun, rows: Ints) -> dict[str, Ints]:
    """When dynamic instructions begin and end, and on which core."""
    start, end = ns(core, core.recording.clock.start[rows]), ns(core, core.recording.clock.end[rows])
    return {"start_ts": start, "end_ts": end, "duration_ns": end - start, "pcore_idx": np.full(len(rows), core.core)}


def texts(values: Sequence[str], number: NDArray[np.int32]) -> list[str]:
    """One of `values` for each number."""
    return [values[at] for at in number.tolist()]


def table_of(core: CoreRun, row: int) -> str:
    """Which table has a dynamic instruction."""
    return "DmaPacketAggregated" if IS_DMA[core.recording.dynamic.queue[row]] else "Instruction"
