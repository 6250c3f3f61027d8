"""Holder: remembers what lies in memory that is handed out again and again."""

from collections.abc import Hashable
from typing import Any


class Holder:
    """What lies where, by key, until something else does."""

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[int, int, Any]] = {}

    def hold(self, key: Hashable, at: int, size: int, what: Any) -> None:
        """Remembers `what` lies in `size` bytes from `at` on, until these are handed out again."""
        self._held[key] = at, at + size, what

    def find(self, key: Hashable) -> Any:
        """What still lies there under the key, or None."""
        return self._held[key][2] if key in self._held else None

    def drop(self, first: int, end: int) -> None:
        """Forgets all of which a byte lies in [first, end)."""
        self._held = {key: held for key, held in self._held.items() if held[1] <= first or end <= held[0]}
