"""place: byte offsets for buffers with lifetimes, largest first, each at the lowest place free while it lives."""

from collections.abc import Iterable
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
    """Offsets by name, and the first buffer that found no room (None if all did)."""
    placed: list[tuple[Buffer, int]] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
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
