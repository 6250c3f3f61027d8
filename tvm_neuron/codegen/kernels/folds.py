"""Fold: of a tensor, several rows or columns as one, side by side on the partitions; Room: how many there may be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.schedule.tiling import PARTITIONS


@dataclass(frozen=True)
class Fold:
    """`by` rows of a tensor as one: its rows are those from `first` on, of which there are `rows`, the others padding.

    Or columns, along dimension `along`; what is said of rows holds for them too.

    `pieces` are the channels [start, end) that stay together: those that one kernel writes, in parts that fill the
    partitions if they are more. The channels of a piece lie there row by row.
    """

    along: int
    by: int
    first: int
    rows: int
    partitions: int
    pieces: tuple[tuple[int, int], ...]

    @property
    def order(self) -> NDArray[np.intp]:
        """Of each channel of the folded tensor, which one it is."""
        return np.concatenate([np.tile(np.arange(start, end), self.by) for start, end in self.pieces])

    @property
    def is_of_squares(self) -> bool:
        """Whether the partitions have room for as many columns beside."""
        return self.partitions < PARTITIONS

    @property
    def top(self) -> int:
        """The folded row in which rows start that are no padding."""
        return -(-self.first // self.by)

    def inside(self, low: int, high: int) -> tuple[tuple[int, int], ...]:
        """The pieces in a range of channels, counted from its first."""
        return tuple((start - low, end - low) for start, end in self.pieces if low <= start < high)


@dataclass(frozen=True)
class Room:
    """How folds along rows or columns are chosen: `partitions` for each piece, and at most `most` of many channels."""

    along: int
    partitions: int
    most: int
    prefers_more: bool  # of two folds that leave equally many partitions unused
