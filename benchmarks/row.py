"""Row: one published number, beside what it is compared with in the same run; and how samples become one."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """`ours` and `theirs` are medians of `samples`; `bar` is what `ours` (or its ratio to theirs) should stay below."""

    what: str
    unit: str
    ours: float
    peer: str = ""
    theirs: float | None = None
    samples: tuple[float, ...] = ()
    bar: float | None = None
    is_bar_a_ratio: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times as much as the peer."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is; None without one."""
        if self.bar is None:
            return None
        return (self.ratio or 0.0 if self.is_bar_a_ratio else self.ours) < self.bar


def seconds(call: Callable[[], Any]) -> float:
    """The wall time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def side_by_side(calls: Sequence[Callable[[], Any]], repeats: int) -> list[list[float]]:
    """Wall times of each call, taken in turns, so that whatever else the machine does falls on all alike."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, taken in zip(calls, samples, strict=True):
            taken.append(seconds(call))
    return samples


def median(samples: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(samples)
