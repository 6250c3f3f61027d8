"""place: byte offsets for buffers with lifetimes, each at the lowest place free while it lives."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from math import gcd


@dataclass(frozen=True)
class Buffer:
    """`size` bytes of each partition, alive from step `first` to step `last`, both included."""

    name: object
    size: int
    first: int
    last: int

    def overlaps(self, other: "Buffer") -> bool:
        """Whether both are alive at some step."""
        return self.first <= other.last and other.first <= self.last


_Key = Callable[[Buffer], tuple[int, int]]
ORDERS: tuple[_Key, ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (-b.size * (b.last - b.first + 1), b.first),
    lambda b: (b.first, -b.size),
)
REPAIRS = 11  # of an order: each puts another buffer first


def place(buffers: Iterable[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """Offsets by name, and the first buffer that found no room (None if all did).

    Buffers are placed largest first; where gaps keep one out, longest-lived first, then in the order of time. At last,
    what finds no room in one of these orders is placed first of all, a few times.
    """
    every = list(buffers)
    beside = _beside(every)
    may_fit = peak_bytes(every) <= capacity
    tries = []
    for key in ORDERS if may_fit else ORDERS[:1]:
        order = _Order(every, beside, capacity, key)
        failed = order.run()
        if failed is None:
            return order.offsets(), None
        tries.append((order, failed))
    first_try = tries[0][0].offsets(), every[tries[0][1]]
    for order, failed in tries if may_fit else ():
        if order.repair(failed):
            return order.offsets(), None
    return first_try


def tightest(buffers: Sequence[Buffer], capacity: int) -> Iterator[dict[object, int]]:
    """Offsets by name for which about the least capacity is enough, for each order of buffers in which all fit.

    That with the longest-lived at the lowest places comes first: they break up the memory above them the least.
    """
    if not buffers:
        return
    beside = _beside(buffers)
    unit = gcd(*(buffer.size for buffer in buffers))
    for key in (*ORDERS[1:], ORDERS[0]):
        low, high = peak_bytes(buffers) // unit, capacity // unit
        found = _placed(buffers, beside, high * unit, key)
        while found and low < high:
            middle = (low + high) // 2
            tighter = _placed(buffers, beside, middle * unit, key)
            found, low, high = (tighter, low, middle) if tighter else (found, middle + 1, high)
        if found:
            yield found


def _placed(
    buffers: Sequence[Buffer], beside: Sequence[Sequence[int]], capacity: int, key: _Key
) -> dict[object, int] | None:
    """Offsets by name of buffers in that order, or with some of them put first."""
    order = _Order(buffers, beside, capacity, key)
    failed = order.run()
    return order.offsets() if failed is None or order.repair(failed) else None


class _Order:
    """Buffers, by number, placed one after the other; what was put first since moves only those that it must."""

    def __init__(self, every: Sequence[Buffer], beside: Sequence[Sequence[int]], capacity: int, key: _Key) -> None:
        order = sorted(range(len(every)), key=lambda number: key(every[number]))
        self.every, self.beside, self.capacity = every, beside, capacity
        self.rank = {number: rank for rank, number in enumerate(order)}
        self.coming = iter(order)
        self.first_rank = 0
        self.taken: dict[int, tuple[int, int]] = {}  # from where to where, by number
        self.moved: set[int] = set()  # whose place may be another one now
        self.heap: list[tuple[int, int]] = []  # their ranks and numbers

    def offsets(self) -> dict[object, int]:
        """By name, of those that have found room."""
        return {self.every[number].name: start for number, (start, _) in self.taken.items()}

    def run(self) -> int | None:
        """Places those that have no place, or may have another one; the first that finds no room, or None."""
        while self.heap:
            _, number = heappop(self.heap)
            self.moved.discard(number)
            start = self._lowest(number)
            if start != self.taken[number][0]:
                if start + self.every[number].size > self.capacity:
                    return number
                self._put(number, start)
        for number in self.coming:
            start = self._lowest(number)
            end = start + self.every[number].size
            if end > self.capacity:
                return number
            self.taken[number] = start, end
        return None

    def repair(self, failed: int) -> bool:
        """Places what found no room before all others, and so on a few times; whether all find room then."""
        for _ in range(REPAIRS):
            self.put_first(failed)
            found = self.run()
            if found is None:
                return True
            failed = found
        return False

    def put_first(self, number: int) -> None:
        """Places a buffer before all others."""
        self.first_rank -= 1
        self.rank[number] = self.first_rank
        self._put(number, 0)

    def _put(self, number: int, start: int) -> None:
        """At a place that it did not have before: what lies there moves, and what may now lie lower."""
        end, rank, ranks, taken = start + self.every[number].size, self.rank[number], self.rank, self.taken
        left = taken[number][0] if number in taken else self.capacity
        taken[number] = start, end
        for other in self.beside[number]:
            if other in taken and ranks[other] > rank and other not in self.moved:
                low, high = taken[other]
                if (low < end and start < high) or left < high:
                    self.moved.add(other)
                    heappush(self.heap, (ranks[other], other))

    def _lowest(self, number: int) -> int:
        """The lowest place that is free beside those placed before it."""
        rank, size, ranks, taken = self.rank[number], self.every[number].size, self.rank, self.taken
        before = [taken[other] for other in self.beside[number] if other in taken and ranks[other] < rank]
        before.sort()
        lowest = 0
        for start, end in before:
            if start - lowest >= size:
                break
            lowest = max(lowest, end)
        return lowest


def _beside(buffers: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer the numbers of those that are alive at one of its steps."""
    found: list[list[int]] = [[] for _ in buffers]
    alive: list[int] = []
    for number in sorted(range(len(buffers)), key=lambda n: buffers[n].first):
        first = buffers[number].first
        alive = [other for other in alive if buffers[other].last >= first]
        for other in alive:
            found[other].append(number)
        found[number] += alive
        alive.append(number)
    return found


def peak_bytes(buffers: Iterable[Buffer]) -> int:
    """The most bytes of a partition that are alive at one step."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        changes[buffer.first] = changes.get(buffer.first, 0) + buffer.size
        changes[buffer.last + 1] = changes.get(buffer.last + 1, 0) - buffer.size
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)
