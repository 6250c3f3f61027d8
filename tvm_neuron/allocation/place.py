"""place: byte offsets for buffers with lifetimes, each at the lowest place free while it lives."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate


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


def place(buffers: Iterable[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """Offsets by name, and the first buffer that found no room (None if all did).

    Buffers are placed largest first; where gaps keep one out, longest-lived first, then in the order of time.
    """
    every = list(buffers)
    first_try = None
    for key in _ORDERS:
        offsets, failed = _place_in_order(sorted(every, key=key), capacity)
        if failed is None:
            return offsets, None
        first_try = first_try or (offsets, failed)
    assert first_try is not None
    return _repaired(every, capacity) or first_try


_ORDERS: tuple[Callable[[Buffer], tuple[int, int]], ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (-b.size * (b.last - b.first + 1), b.first),
    lambda b: (b.first, -b.size),
)


_REPAIRS = 12  # of an order, each as quick as placing in it
_STEPS = 32  # of a bucket: what may overlap a buffer is looked for in the buckets of its steps alone


def _repaired(every: list[Buffer], capacity: int) -> tuple[dict[object, int], None] | None:
    """Offsets found by placing what found no room first of all, a few times; None if something never does."""
    if peak_bytes(every) > capacity:
        return None
    for key in _ORDERS:
        order = sorted(every, key=key)
        for _ in range(_REPAIRS):
            offsets, failed = _place_in_order(order, capacity)
            if failed is None:
                return offsets, None
            order.remove(failed)
            order.insert(0, failed)
    return None


def _place_in_order(buffers: Iterable[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """Each buffer at the lowest place that is free while it lives."""
    offsets: dict[object, int] = {}
    buckets: defaultdict[int, list[tuple[Buffer, int]]] = defaultdict(list)
    for buffer in buffers:
        here = [buckets[at] for at in range(buffer.first // _STEPS, buffer.last // _STEPS + 1)]
        # what lies in several buckets comes several times, which does not matter
        taken = sorted((at, at + other.size) for placed in here for other, at in placed if other.overlaps(buffer))
        offset = 0
        for start, end in taken:
            if start - offset >= buffer.size:
                break
            offset = max(offset, end)
        if offset + buffer.size > capacity:
            return offsets, buffer
        offsets[buffer.name] = offset
        for placed in here:
            placed.append((buffer, offset))
    return offsets, None


def peak_bytes(buffers: Iterable[Buffer]) -> int:
    """The most bytes of a partition that are alive at one step."""
    changes: Counter[int] = Counter()
    for buffer in buffers:
        changes[buffer.first] += buffer.size
        changes[buffer.last + 1] -= buffer.size
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)
