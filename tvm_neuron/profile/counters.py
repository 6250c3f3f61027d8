"""Counters: what a run used of the machine, in windows of equal length."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.engines import QUEUES, of_dma
from tvm_neuron.profile.recording import Ints, Recording
from tvm_neuron.sim.clock import PS_PER_SECOND

Floats = NDArray[np.float64]
WINDOWS = 500
_PE = QUEUES.index("pe")


@dataclass(frozen=True)
class Counters:
    """One value for each window; window i lasts from `edges_ps[i]` to `edges_ps[i + 1]`."""

    edges_ps: Ints
    dram_bytes: Floats  # moved
    macs: Floats  # done by the PE array
    taken_bytes: dict[str, Ints]  # most that was in use, of "sbuf" and "psum"

    @property
    def dram_bytes_per_second(self) -> Floats:
        """The mean rate of each window."""
        return self.dram_bytes * PS_PER_SECOND / np.diff(self.edges_ps)


def count(recording: Recording, windows: int = WINDOWS) -> Counters:
    """The counters of a run; none if it takes no time."""
    clock = recording.clock
    edges = np.unique(np.linspace(0, clock.total, windows + 1).astype(np.int64))
    queue = recording.dynamic.queue
    is_dma = np.array([of_dma(name) for name in QUEUES])[queue]
    return Counters(
        edges,
        spread(clock.start[is_dma], clock.end[is_dma], recording.cost_of("dram_bytes")[is_dma], edges),
        spread(clock.start[queue == _PE], clock.end[queue == _PE], recording.cost_of("macs")[queue == _PE], edges),
        {place: _most(*recording.lives.taken(place), edges) for place in ("sbuf", "psum")},
    )


def spread(start: Ints, end: Ints, amount: Ints, edges: Ints) -> Floats:
    """Amounts, each of which flows evenly from its start to its end, by window; they don't overlap."""
    order = np.argsort(start, kind="stable")
    times = np.stack([start[order], end[order]], 1).ravel()
    until = np.cumsum(amount[order])
    flowed = np.stack([until - amount[order], until], 1).ravel()
    return np.diff(np.interp(edges, times, flowed)) if len(times) else np.zeros(len(edges) - 1)


def _most(times: Ints, values: Ints, edges: Ints) -> Ints:
    """The largest value of a step function in each window."""
    if not len(edges) - 1:
        return np.zeros(0, np.int64)
    steps = np.concatenate([[0], values])
    at_edges = steps[np.searchsorted(times, edges, "right")]
    every = np.concatenate([edges, times])
    order = np.argsort(every, kind="stable")
    value = np.concatenate([at_edges, values])[order]
    return np.maximum.reduceat(value, np.searchsorted(every[order], edges[:-1], "left"))
