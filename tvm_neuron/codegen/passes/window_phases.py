"""phases_of: which elements of a small map a window meets that steps over the map after it was enlarged."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

import numpy as np

from tvm_neuron.codegen.passes.positions_of import NOTHING, Positions
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.linear import Linear

MOST = 64
"""Phases of one convolution: each is a kernel, with weights of its own and every so manieth of the results."""

NOWHERE = -(1 << 30)  # of a tap that meets nothing but zeros


@dataclass(frozen=True)
class Phases:
    """Along dimension `dim` of the data: of the results, which `at` counts, each so manieth meets the same taps.

    `taps` has of each phase where each tap lies in the source for the phase's first result; from one result of a phase
    to the next all move on by `step`. `tap` counts them, if there are several.
    """

    dim: int
    at: Axis
    tap: Axis | None
    step: int
    taps: tuple[Positions, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.taps)

    def results(self, phase: int) -> int:
        """How many results the phase has."""
        return len(range(phase, self.at.extent, self.count))

    def places(self, phase: int) -> range:
        """What the first result of the phase meets, from one place to the next as far as all of these have it."""
        found = np.unique(self.taps[phase][self.taps[phase] != NOWHERE]).tolist()
        each = gcd(*(after - before for before, after in pairwise(found))) or 1
        return range(found[0], found[-1] + 1, each)

    @property
    def asked(self) -> int:
        """How many elements the results of a phase each meet of the enlarged map, in all phases."""
        return sum(map(len, self.taps))

    @property
    def kept(self) -> int:
        """How many of the small map."""
        return sum(len(self.places(phase)) for phase in range(self.count))

    @property
    def span(self) -> tuple[int, int]:
        """The least and the greatest place that is read, be it outside of the source."""
        ends = [(self.places(phase), self.step * (self.results(phase) - 1)) for phase in range(self.count)]
        return min(places[0] for places, _ in ends), max(places[-1] + on for places, on in ends)


def phases_of(dim: int, part: Linear, positions: Positions, extent: int) -> Phases | None:
    """The least number of phases in which taps stay the same; None if no number does.

    Of an index along the dimension `dim` whose elements have these positions in a source of that extent.
    """
    results = [axis for axis in part.terms if not axis.is_reduction]
    summed = [axis for axis in part.terms if axis.is_reduction]
    if len(results) != 1 or len(summed) > 1:
        return None
    (at,), tap = results, next(iter(summed), None)
    steps = part.terms[tap] * np.arange(tap.extent) if tap else np.zeros(1, np.int64)
    read = positions[part.const + part.terms[at] * np.arange(at.extent)[:, None] + steps]
    for count in range(1, min(MOST, at.extent - 1) + 1):
        step = _step(read, count)
        taps = [_first(read[phase::count], step) for phase in range(count)] if step else []
        if taps and all(_is_told(read[phase::count], taps[phase], step, extent) for phase in range(count)):
            return Phases(dim, at, tap, step, tuple(taps)) if _meet(taps) else None
    return None


def _step(read: Positions, count: int) -> int:
    """How far taps move on from one result of a phase to the next; 0 if that differs, or nothing tells it."""
    before, after = read[:-count], read[count:]
    moves = np.unique((after - before)[(before != NOTHING) & (after != NOTHING)])
    return int(moves[0]) if len(moves) == 1 and moves[0] > 0 else 0


def _first(read: Positions, step: int) -> Positions:
    """Where the taps lie for the first of the results, by the first of these that meets anything there."""
    is_met = read != NOTHING
    at = is_met.argmax(axis=0)
    return np.where(is_met.any(axis=0), read[at, np.arange(read.shape[1])] - step * at, NOWHERE)


def _is_told(read: Positions, first: Positions, step: int, extent: int) -> bool:
    """Whether all that is read lies where the taps say, and all that is not lies outside of the source."""
    places = first + step * np.arange(len(read))[:, None]
    return np.array_equal(np.where((places >= 0) & (places < extent), places, NOTHING), read)


def _meet(taps: Sequence[Positions]) -> bool:
    """Whether each phase meets anything at all."""
    return all((first != NOWHERE).any() for first in taps)
