"""Affine: a number that hardware loops advance, `base + step*i0 + step*i1 ...`, optionally around a ring."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

_TEXT = re.compile(r"(-?\d+)(?:\+\((.*)\)%(\d+)|(.*))")
_TERM = re.compile(r"([+-]\d+)\*i(\d+)")


@dataclass(frozen=True, slots=True)
class Affine:
    """`base + sum(step * i[depth])`, or with a ring `base + (phase + sum(step * i[depth])) % wrap`.

    `i[depth]` counts the iterations of the loop at that nesting depth, 0 being the outermost.
    """

    base: int = 0
    terms: tuple[tuple[int, int], ...] = ()  # (depth, step), by depth
    phase: int = 0
    wrap: int = 0

    def at(self, indices: Sequence[int]) -> int:
        """The value in the iteration `indices` (one index per depth)."""
        moving = self.phase + sum(step * indices[depth] for depth, step in self.terms)
        return self.base + (moving % self.wrap if self.wrap else moving)

    def step(self, depth: int) -> int:
        """How far one iteration of the loop at `depth` moves it (0 if not at all)."""
        return next((step for d, step in self.terms if d == depth), 0)

    def plus(self, base: int) -> "Affine":
        """The same movement, `base` further on."""
        return Affine(self.base + base, self.terms, self.phase, self.wrap)

    def span(self, counts: Sequence[int]) -> tuple[int, int]:
        """Smallest and largest value while the loop at depth d runs `counts[d]` times."""
        low, high = self._reach(self.terms, self.phase, counts)
        if self.wraps(counts):
            low, high = self._span_of_ring(counts)
        return self.base + low, self.base + high

    def _span_of_ring(self, counts: Sequence[int]) -> tuple[int, int]:
        """Of a ring that is left and entered again: its slots lie as far apart as divides all steps.

        Smaller steps may move within a slot; they count as such where they never leave it.
        """
        terms = sorted(self.terms, key=lambda term: abs(term[1]))
        found = []
        for within in range(max(1, len(terms))):
            slot = gcd(self.wrap, *(step for _, step in terms[within:]))
            low, high = self._reach(terms[:within], self.phase % slot, counts)
            if low >= 0 and high < slot:
                found.append((low, self.wrap - slot + high))
        return min(found, key=lambda bounds: bounds[1] - bounds[0])

    @staticmethod
    def _reach(terms: Sequence[tuple[int, int]], start: int, counts: Sequence[int]) -> tuple[int, int]:
        moves = [step * (counts[d] - 1) for d, step in terms]
        return start + sum(min(0, move) for move in moves), start + sum(max(0, move) for move in moves)

    def wraps(self, counts: Sequence[int]) -> bool:
        """Whether the ring is left, and entered again at its other end, while the loops run `counts` times."""
        low, high = self._reach(self.terms, self.phase, counts)
        return self.wrap > 0 and (low < 0 or high >= self.wrap)

    def __str__(self) -> str:
        moving = "".join(f"{step:+d}*i{depth}" for depth, step in self.terms)
        return (
            f"{self.base}+({self.phase:+d}{moving})%{self.wrap}" if self.wrap else f"{self.base + self.phase}{moving}"
        )

    @classmethod
    def parse(cls, text: str) -> "Affine":
        """Reads what `str` wrote.

        Raises:
            ValueError: it is not such a text.
        """
        match = _TEXT.fullmatch(text)
        if not match:
            raise ValueError(f"'{text}' is no address; write 64+128*i0 or 64+(+0+128*i0)%1024")
        base, inner, wrap, plain = match.groups()
        phase = 0
        moving = plain or ""
        if inner is not None:
            head = re.match(r"[+-]\d+(?!\*|\d)", inner)
            phase = int(head.group()) if head else 0
            moving = inner[head.end() :] if head else inner
        terms = tuple((int(d), int(s)) for s, d in _TERM.findall(moving))
        if "".join(f"{s:+d}*i{d}" for d, s in terms) != moving:
            raise ValueError(f"'{text}' is no address; write 64+128*i0 or 64+(+0+128*i0)%1024")
        return cls(int(base), terms, phase, int(wrap or 0))


def affine(base: int, terms: Iterable[tuple[int, int]] = (), phase: int = 0, wrap: int = 0) -> Affine:
    """An Affine with zero steps left out and depths in order."""
    return Affine(base, tuple(sorted((d, s) for d, s in terms if s)), phase, wrap)
