"""repeated_rows: a matrix of few elements a row as rows that come again and again, each time some columns further on.

Of a linear resize from 16 to 64 elements, say, four rows come 15 times, and two at each end twice.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_WIDEST = 2
"""Elements of a row: as many as lie about a position."""


@dataclass(frozen=True)
class Row:
    """The elements of a row that are not zero: `weights`, the first of them in column `first`."""

    first: int
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Repeated:
    """`count` times the rows, each time `step` columns further on."""

    rows: tuple[Row, ...]
    step: int
    count: int


def repeated_rows(matrix: np.ndarray, most: int) -> list[Repeated] | None:
    """The matrix [new, old] from its first row to its last; None where that takes more than `most` different rows, or
    a row has more than two elements.

    Weights come from positions in float32, of which those of a long axis have fewer digits behind the point: rows are
    alike that differ by no more than this.
    """
    near = matrix.shape[1] * 2.0**-22
    rows = _Rows.of(matrix, near)
    if rows is None:
        return None
    found = [rows.equal(0, len(matrix)), *(rows.by_period(each) for each in range(1, min(most, len(matrix)) + 1))]
    best = min(found, key=_different)
    return [rows.part(run) for run in best] if _different(best) <= most else None


@dataclass(frozen=True)
class _Run:
    """So many rows from `begin` on, `count` times."""

    begin: int
    rows: int
    step: int
    count: int


def _different(runs: list[_Run]) -> int:
    return sum(run.rows for run in runs)


@dataclass(frozen=True)
class _Rows:
    """All rows: the column of the first element of each, and the elements from there on, [new, 2]."""

    first: np.ndarray
    weights: np.ndarray
    near: float

    @staticmethod
    def of(matrix: np.ndarray, near: float) -> "_Rows | None":
        is_used = np.abs(matrix) > near  # never of what is no number
        first = np.argmax(is_used, axis=1)
        last = matrix.shape[1] - 1 - np.argmax(is_used[:, ::-1], axis=1)
        if not is_used.any(axis=1).all() or (last - first).max() >= _WIDEST:
            return None
        columns = np.minimum(first[:, None] + np.arange(_WIDEST), matrix.shape[1] - 1)
        is_inside = np.arange(_WIDEST) <= (last - first)[:, None]
        weights = np.where(is_inside, np.take_along_axis(matrix, columns, axis=1), 0.0)
        return _Rows(first, weights * (matrix.sum(axis=1) / weights.sum(axis=1))[:, None], near)

    def part(self, run: _Run) -> Repeated:
        rows = tuple(self._row(at) for at in range(run.begin, run.begin + run.rows))
        return Repeated(rows, run.step, run.count)

    def _row(self, at: int) -> Row:
        used = 1 + int(np.flatnonzero(self.weights[at])[-1])
        return Row(int(self.first[at]), tuple(self.weights[at, :used].tolist()))

    def by_period(self, period: int) -> list[_Run]:
        """With those around the middle one as repetitions of so many; before and after, equal ones together."""
        size, middle = len(self.first), (len(self.first) - period) // 2
        if middle + period >= size:
            return self.equal(0, size)
        step = int(self.first[middle + period] - self.first[middle])
        times, beyond = np.divmod(np.arange(size) - middle, period)
        fits = self._alike(middle + beyond, np.arange(size), times * step)
        begin = middle - _leading(fits[:middle][::-1])
        end = middle + period + _leading(fits[middle + period :])
        count = (end - begin) // period
        if step <= 0 or count < 2:
            return self.equal(0, size)
        inner = _Run(begin, period, step, count)
        return [*self.equal(0, begin), inner, *self.equal(begin + count * period, size)]

    def equal(self, begin: int, end: int) -> list[_Run]:
        """Equal rows together."""
        if begin == end:
            return []
        at = np.arange(begin, end - 1)
        borders = [begin, *(1 + at[~self._alike(at, at + 1, 0)]).tolist(), end]
        return [_Run(low, 1, 0, high - low) for low, high in pairwise(borders)]

    def _alike(self, rows: np.ndarray, later: np.ndarray, step: np.ndarray | int) -> np.ndarray:
        is_there = self.first[later] - self.first[rows] == step
        return is_there & (np.abs(self.weights[later] - self.weights[rows]) <= self.near).all(axis=1)


def _leading(flags: np.ndarray) -> int:
    """How many are true before the first that is not."""
    return len(flags) if flags.all() else int(np.argmin(flags))
