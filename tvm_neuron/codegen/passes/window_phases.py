"""phases_of: which elements of a small map a window meets that steps over the map after it was enlarged."""

from dataclasses import dataclass
from itertools import pairwise
from math import gcd

import numpy as np

from tvm_neuron.codegen.passes.positions_of import NOTHING, Positions
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.linear import Linear

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
    def all_places(self) -> range:
        """What the first results of all phases meet."""
        found = [self.places(phase) for phase in range(self.count)]
        low, high = min(places[0] for places in found), max(places[-1] for places in found)
        each = gcd(*(places.step for places in found if len(places) > 1), *(places[0] - low for places in found)) or 1
        return range(low, high + 1, each)

    @property
    def whole_span(self) -> tuple[int, int]:
        """The least and the greatest place that is read if all phases have as many results as the first one."""
        places = self.all_places
        return places[0], places[-1] + self.step * (self.results(0) - 1)

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
    apart = _apart(positions)
    if len(results) != 1 or len(summed) > 1 or not apart:
        return None
    (at,), tap = results, next(iter(summed), None)
    count, step = (whole // gcd(apart, part.terms[at]) for whole in (apart, part.terms[at]))
    steps = part.terms[tap] * np.arange(tap.extent) if tap else np.zeros(1, np.int64)
    taps = []
    for phase in range(min(count, at.extent)):
        firsts = part.const + part.terms[at] * np.arange(phase, at.extent, count)
        read = positions[firsts[:, None] + steps]
        taps.append(_first(read, step))
        if not _is_told(read, taps[-1], step, extent) or (taps[-1] == NOWHERE).all():
            return None
    return Phases(dim, at, tap, step, tuple(taps))


def _apart(positions: Positions) -> int:
    """How far apart elements lie that follow each other in the source; 0 if that differs, or nothing tells it."""
    places = np.flatnonzero(positions != NOTHING)
    found = positions[places]
    begins = places[np.flatnonzero(np.diff(found, prepend=NOTHING))]
    gaps = np.unique(np.diff(begins[1:] if len(begins) > 2 else begins))  # the first may begin before
    return int(gaps[0]) if len(gaps) == 1 and (np.diff(positions[begins]) == 1).all() else 0


def _first(read: Positions, step: int) -> Positions:
    """Where the taps lie for the first of the results, by the first of these that meets anything there."""
    is_met = read != NOTHING
    at = is_met.argmax(axis=0)
    return np.where(is_met.any(axis=0), read[at, np.arange(read.shape[1])] - step * at, NOWHERE)


def _is_told(read: Positions, first: Positions, step: int, extent: int) -> bool:
    """Whether all that is read lies where the taps say, and all that is not lies outside of the source."""
    places = first + step * np.arange(len(read))[:, None]
    return np.array_equal(np.where((places >= 0) & (places < extent), places, NOTHING), read)
