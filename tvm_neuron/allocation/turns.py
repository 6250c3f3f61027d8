"""Turns: which of many buffers lie in a memory that has no room for all, step by step: what comes in, and what goes.

Where room is wanted, that one goes whose room is free for the longest for the bytes that are moved for it.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Turns(Generic[Name]):
    """`uses` are the steps, ascending, at which each buffer is needed, `sizes` its bytes of a partition.

    `price` says how many bytes have to be moved for a buffer that goes now and comes back.
    """

    def __init__(
        self, uses: Mapping[Name, Sequence[int]], sizes: Mapping[Name, int], room: int, price: Callable[[Name], float]
    ) -> None:
        self._next = {name: list(steps[::-1]) for name, steps in uses.items()}
        self._sizes, self._room, self._price = sizes, room, price
        self._inside: set[Name] = set()
        self._used = 0

    def at(self, step: int, needed: Set[Name]) -> Iterator[tuple[Name, bool]]:
        """What goes (False) and comes (True) so that those needed at this step are in, in that order.

        More room than there is gets used where they alone take more.
        """
        for name in needed:
            self._next[name].pop()
        for name in sorted(needed - self._inside):  # type: ignore[type-var]
            size = self._sizes[name]
            while self._used + size > self._room and (others := self._inside - needed):
                goes = max(others, key=lambda other: (self._free_per_byte(other, step), other))
                self._leave(goes)
                yield goes, False
            self._inside.add(name)
            self._used += size
            yield name, True

    def done(self, needed: Set[Name]) -> None:
        """The step is over: what none needs later leaves, with nothing to be moved."""
        for name in needed:
            if not self._next[name]:
                self._leave(name)

    def _free_per_byte(self, name: Name, step: int) -> float:
        return (self._next[name][-1] - step) * self._sizes[name] / self._price(name)

    def _leave(self, name: Name) -> None:
        self._inside.discard(name)
        self._used -= self._sizes[name]
