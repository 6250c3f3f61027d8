"""Row: one published number, beside what it is compared with in the same run; and how samples are taken."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Kind(StrEnum):
    """How a bar is to be read."""

    MOST = "at most"
    LEAST = "at least"
    WITHIN = "within"  # a ratio is this near to 1


@dataclass(frozen=True)
class Bar:
    """What the value of a row, or its ratio to the peer's, should keep."""

    limit: float
    is_ratio: bool = False
    kind: Kind = Kind.MOST

    def is_met(self, value: float) -> bool:
        """Whether `value` keeps it; NaN never does."""
        if self.kind is Kind.WITHIN:
            return abs(value - 1) <= self.limit
        return value >= self.limit if self.kind is Kind.LEAST else value <= self.limit

    def text(self, unit: str) -> str:
        """The bar in words."""
        if self.kind is Kind.WITHIN:
            return f"within {self.limit:.0%}"
        return f"{self.kind} {self.limit:g}{'x' if self.is_ratio else f' {unit}'}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was measured here and, in the same run, of `peer`; the median counts.

    The ratio of the best samples is shown as well: on a busy machine it is nearer to what a quiet one gives, because a
    peer with more threads suffers more. A bar on the ratio holds for both. `earlier` are the medians of earlier runs of
    the same code on the same machine.
    """

    what: str
    unit: str
    samples: tuple[float, ...]
    peer: str = ""
    peer_samples: tuple[float, ...] = ()
    bar: Bar | None = None
    group: str = ""
    earlier: tuple[float, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from other rows."""
        return self.group, self.what, self.peer

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
        return min(self.samples) / min(self.peer_samples) if self.theirs else None

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is; None without one."""
        if self.bar is None:
            return None
        judged = (self.ratio, self.best_ratio) if self.bar.is_ratio else (self.ours,)
        return all(value is not None and self.bar.is_met(value) for value in judged)

    @property
    def spread(self) -> float | None:
        """How far this and earlier runs lie apart, over their median; None of a first run."""
        runs = (self.ours, *self.earlier)
        middle = statistics.median(runs)
        return (max(runs) - min(runs)) / middle if self.earlier and middle else None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, with what follows from them."""
        derived = ("ours", "theirs", "ratio", "best_ratio", "is_met", "spread")
        return asdict(self) | {name: getattr(self, name) for name in derived}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        bar = value["bar"] and Bar(value["bar"]["limit"], value["bar"]["is_ratio"], Kind(value["bar"]["kind"]))
        texts = {name: value[name] for name in ("what", "unit", "peer", "group")}
        numbers = {name: tuple(value[name]) for name in ("samples", "peer_samples", "earlier")}
        return cls(**texts, **numbers, bar=bar)


def seconds(call: Callable[[], Any]) -> float:
    """The wall time of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def side_by_side(
    calls: Sequence[tuple[Callable[[], Any], int]], repeats: int, rest_seconds: float = 0.0
) -> list[tuple[float, ...]]:
    """Wall times of each call, taken in turns, so that whatever else the machine does falls on all alike.

    The number beside a call is how often it is called in one turn: more for short ones. A rest comes before each turn,
    and after it a call that does not count, because this thread and its helpers have slept.
    """
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for (call, times), taken in zip(calls, samples, strict=True):
            if rest_seconds:
                time.sleep(rest_seconds)
                call()
            taken += [seconds(call) for _ in range(times)]
    return [tuple(taken) for taken in samples]
