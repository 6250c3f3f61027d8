"""Vectors: constants with one value for each channel, as columns of float32 in SBUF.

A vector takes a column for each chunk of partitions, once for every partition at which runs of channels start within a
chunk: all runs that start there find their values in these columns, however kernels are cut.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_COLUMNS = 256  # of a table that comes in turns: rows of 1 KiB, of which a DMA has few enough
ITEM = 4  # bytes of a value


class Vectors:
    """From byte `at` of each partition on: one table of all columns, or two at a time of those that come in turns.

    The columns of a kernel lie in one table, which is complete when all kernels that use it were emitted.
    """

    def __init__(self, at: int, columns: int, in_turns: bool, partitions: int) -> None:
        self.at, self.columns, self.in_turns, self.partitions = at, columns, in_turns, partitions
        self.tables: list[NDArray[np.float32]] = [] if in_turns else [self._empty()]
        self.used = 0  # columns of the last table
        self._known: dict[tuple[int, int], int] = {}

    def begin(self, columns: int) -> NDArray[np.float32] | None:
        """Makes room for a kernel's columns; a table that has to be brought in first, where another one begins."""
        if not self.in_turns or not columns or (self.tables and self.used + columns <= self.columns):
            return None
        self.tables.append(self._empty())
        self.used = 0
        self._known = {}
        return self.tables[-1]

    @property
    def table_at(self) -> int:
        """Where the last table lies."""
        return self.at + (len(self.tables) - 1) % 2 * self.columns * ITEM

    def find(self, values: NDArray[Any], start: int) -> int:
        """The byte of the column with `values[start:]`, as many as there are partitions; the next chunks follow."""
        chunk, phase = divmod(start, self.partitions)
        key = id(values), phase
        if key not in self._known:
            count = columns_of(len(values), phase, self.partitions)
            self._known[key] = self.used
            assert self.used + count <= self.columns, f"{self.used + count} columns in a table of {self.columns}"
            for i in range(count):
                column = values[phase + i * self.partitions :][: self.partitions]
                self.tables[-1][: len(column), self.used] = column
                self.used += 1
        return self.table_at + ITEM * (self._known[key] + chunk)

    def _empty(self) -> NDArray[np.float32]:
        return np.zeros((self.partitions, self.columns), np.float32)


def columns_of(length: int, phase: int, partitions: int) -> int:
    """How many columns a vector takes for runs that start at partition `phase` of a chunk."""
    return -(-(length - phase) // partitions)
