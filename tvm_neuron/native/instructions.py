"""find_waits and run_clock: what is worked out for every instruction of a program, one after the other, from arrays.

Where the library isn't there they return None, and the callers, which have the same in Python, do it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.native.library import native

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tiles:
    """What static instructions touch: those of number n are the rows of `table` from `first[n]` to `first[n + 1]`.

    A row: the memory, whether it is written, and of how many axes, from where in `axes`, its cells are; from where in
    `at` it says in which cell they begin, for each time the instruction runs. An axis: how many cells, how far apart;
    those of the last one lie side by side.
    """

    first: Ints
    table: Ints
    axes: Ints
    at: Ints
    cells: Ints  # of each memory


@dataclass(frozen=True)
class Timed:
    """Instructions, those of each queue together, from `first[q]` to `first[q + 1]`, with times in picoseconds."""

    is_dma: NDArray[np.bool_]  # of each queue
    first: Ints
    busy: Ints
    latency: Ints
    needs_own: NDArray[np.bool_]  # they start when the one before them is complete
    first_wait: Ints  # of each instruction, in `waits`; one more at the end
    waits: Ints  # [waits, (queue, completions)]
    ports: NDArray[np.uint8]  # those that an instruction uses, a bit each
    partners: NDArray[np.int8]  # [queues, ports]: the queue with which it shares one, or -1


@dataclass(frozen=True)
class Times:
    """In the order of `Timed`, in picoseconds."""

    starts: Ints
    done: Ints
    waited: Ints
    why: NDArray[np.int8]


def find_waits(
    number: NDArray[np.int32], queue: NDArray[np.int8], position: Ints, tiles: Tiles, queues: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]] | None:
    """For each instruction and queue: how many must be complete, and whether that is no consequence of the others."""
    library = native()
    if library is None:
        return None
    needed = np.zeros((len(number), queues), np.int32)
    matters = np.zeros((len(number), queues), np.bool_)
    is_done = library.tvm_neuron_waits(
        queues, len(number), *_places(number, queue, position), len(tiles.first) - 1,
        *_places(tiles.first, tiles.table, tiles.axes, tiles.at), len(tiles.cells),
        *_places(tiles.cells, needed, matters),
    )  # fmt: skip
    return (needed, matters) if is_done else None


def run_clock(timed: Timed, most: int, own: int) -> Times | None:
    """When instructions start and are complete; None also where some wait for ever.

    `most` is later than all, `own` the reason of what waits for the result before it.
    """
    library = native()
    if library is None:
        return None
    starts, done, waited = (np.zeros(len(timed.busy), np.int64) for _ in range(3))
    why = np.zeros(len(timed.busy), np.int8)
    is_done = library.tvm_neuron_clock(
        len(timed.is_dma),
        *_places(timed.is_dma, timed.first, timed.busy, timed.latency, timed.needs_own, timed.first_wait, timed.waits),
        *_places(timed.ports), timed.partners.shape[1], *_places(timed.partners), most, own,
        *_places(starts, done, waited, why),
    )  # fmt: skip
    return Times(starts, done, waited, why) if is_done else None


def _places(*arrays: NDArray[Any]) -> tuple[int, ...]:
    """Their addresses; elements lie one after the other."""
    assert all(array.flags.c_contiguous for array in arrays)
    return tuple(array.ctypes.data for array in arrays)
