"""Shadow: for every cell of one memory, the last instruction of each queue that read it, and that wrote it."""

from collections.abc import Sequence

import numpy as np

from tvm_neuron.isa import QUEUES
from tvm_neuron.program.cells import GROUP, Cells, Footprint, Marks, window


class Shadow:
    """Positions count from 1; 0 is never."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._writes: dict[int, Marks] = {}
        self._reads: dict[int, Marks] = {}
        # The last position of each queue in the whole memory: mostly enough to see that all is in order.
        self._last_write = [0] * len(QUEUES)
        self._last_read = [0] * len(QUEUES)

    def unordered(self, tile: Footprint, at: int, clock: Sequence[int], queue: int) -> tuple[int, int, str] | None:
        """(queue, position, where) of an access that `tile` conflicts with and that `clock` doesn't know complete."""
        found = self._find(self._writes, self._last_write, tile, at, clock, queue)
        if not found and tile.is_write:
            found = self._find(self._reads, self._last_read, tile, at, clock, queue)
        return found

    def record(self, tile: Footprint, at: int, queue: int, position: int) -> None:
        """Takes down the access."""
        marks = self._writes if tile.is_write else self._reads
        if queue not in marks:
            marks[queue] = np.zeros(self.cells.groups * self.cells.count, np.int32)
        window(marks[queue], tile, at)[...] = position
        (self._last_write if tile.is_write else self._last_read)[queue] = position

    def _find(
        self, marks: dict[int, Marks], last: Sequence[int], tile: Footprint, at: int, clock: Sequence[int], queue: int
    ) -> tuple[int, int, str] | None:
        for other, cells in marks.items():
            if other == queue or last[other] <= clock[other]:
                continue
            marked = window(cells, tile, at)
            position = int(marked.max())
            if position > clock[other]:
                return other, position, self._where(marked, position, tile, at)
        return None

    def _where(self, marked: Marks, position: int, tile: Footprint, at: int) -> str:
        touched = at + np.argwhere(marked == position) @ np.array(tile.strides)
        group, cell = np.divmod(touched, self.cells.count)
        size = self.cells.cell_bytes
        span = f"bytes {cell.min() * size} to {(cell.max() + 1) * size}"
        return span if isinstance(tile.place, int) else f"partitions from {group.min() * GROUP}, {span}"
