"""Row: one published number, beside what it is compared with in the same run; and how samples are taken."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was measured here and, in the same run, of `peer`; the median counts.

    `bar` is what ours, or its ratio to the peer's, should stay below. The ratio of the best samples is shown as well:
    on a busy machine it is nearer to what a quiet one gives, because a peer with more threads suffers more. A bar on
    the ratio holds for the larger of both.
    """

    what: str
    unit: str
    samples: tuple[float, ...]
    peer: str = ""
    peer_samples: tuple[float, ...] = ()
    bar: float | None = None
    is_bar_a_ratio: bool = False

    @property
    def ours(self) -> float:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def theirs(self) -> float | None:
        """The median of the peer's."""
        return statistics.median(self.peer_samples) if self.peer_samples else None

    @property
    def ratio(self) -> float | None:
        """How many times as much as the peer."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def best_ratio(self) -> float | None:
        """The same of the best samples."""
        return min(self.samples) / min(self.peer_samples) if self.peer_samples else None

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is; None without one."""
        if self.bar is None:
            return None
        return (
            max(self.ratio or 0.0, self.best_ratio or 0.0) < self.bar if self.is_bar_a_ratio else self.ours < self.bar
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        derived = ("ours", "theirs", "ratio", "best_ratio", "is_met")
        given = ("what", "unit", "samples", "peer", "peer_samples", "bar", "is_bar_a_ratio")
        return {name: getattr(self, name) for name in (*given, *derived)}


def seconds(call: Callable[[], Any]) -> float:
    """The wall time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def side_by_side(calls: Sequence[tuple[Callable[[], Any], int]], repeats: int) -> list[tuple[float, ...]]:
    """Wall times of each call, taken in turns, so that whatever else the machine does falls on all alike.

    The number beside a call is how often it is called in one turn: more for short ones.
    """
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for (call, times), taken in zip(calls, samples, strict=True):
            taken += [seconds(call) for _ in range(times)]
    return [tuple(taken) for taken in samples]
