"""place: byte offsets for buffers with lifetimes, each at the lowest place free while it lives."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


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
    return first_try


_ORDERS: tuple[Callable[[Buffer], tuple[int, int]], ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (-b.size * (b.last - b.first + 1), b.first),
    lambda b: (b.first, -b.size),
)


def _place_in_order(buffers: Iterable[Buffer], capacity: int) -> tuple[dict[object, int], Buffer | None]:
    """Each buffer at the lowest place that is free while it lives."""
    placed: list[tuple[Buffer, int]] = []
    for buffer in buffers:
        taken = sorted((at, at + other.size) for other, at in placed if other.overlaps(buffer))
        offset = 0
        for start, end in taken:
            if start - offset >= buffer.size:
                break
            offset = max(offset, end)
        if offset + buffer.size > capacity:
            return {b.name: at for b, at in placed}, buffer
        placed.append((buffer, offset))
    return {b.name: at for b, at in placed}, None


def peak_bytes(buffers: Iterable[Buffer]) -> int:
    """The most bytes of a partition that are alive at one step."""
    every = list(buffers)
    steps = {buffer.first for buffer in every}
    return max((sum(b.size for b in every if b.first <= step <= b.last) for step in steps), default=0)
