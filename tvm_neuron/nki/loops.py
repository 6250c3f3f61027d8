"""The loops of the language: Python runs every iteration, so all of them unroll."""

from collections.abc import Iterator
from typing import Any


class LoopIndex(int):
    """The index of a loop, which knows the loop's first."""

    first: int

    def __new__(cls, value: int, first: int) -> "LoopIndex":
        """An index with the loop's first one."""
        made = super().__new__(cls, value)
        made.first = first
        return made


def static_range(*bounds: Any, **_: Any) -> Iterator[LoopIndex]:
    """As Python's `range`."""
    every = range(*(int(bound) for bound in bounds))
    return (LoopIndex(at, every.start) for at in every)


affine_range = sequential_range = static_range
