"""Carried: what goes from each iteration of an affine_range to the next, although they may run in any order.

Sums and the like, of a tile and itself, are right in any order.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.view import View

Iteration = tuple[tuple[object, int], ...]  # of each loop around, the outermost first
_Place = tuple[int, int]  # number of a tensor, and one of its blocks
IN_ANY_ORDER = ("add", "multiply", "max", "min")


@dataclass(frozen=True)
class _Region:
    """Part of a logical tile, as from where to where of the partitions and of the elements of each."""

    view: View
    partitions: tuple[int, int]
    elems: tuple[int, int]

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Of its elements in a partition."""
        found = np.array([self.view.start[2]])
        for (_, _, step), count in self.view.axes:
            if step and count > 1:
                found = np.add.outer(found, np.arange(count) * step).ravel()
        return found

    def covers(self, other: "_Region") -> bool:
        """Whether it has all elements of the other, for certain."""
        return (
            self.partitions[0] <= other.partitions[0]
            and other.partitions[1] <= self.partitions[1]
            and self.elems[0] <= other.elems[0]
            and other.elems[1] <= self.elems[1]
            and len(self.offsets) == self.elems[1] - self.elems[0]
        )

    def meets(self, other: "_Region") -> bool:
        """Whether they have an element in common."""
        return (
            max(self.partitions[0], other.partitions[0]) < min(self.partitions[1], other.partitions[1])
            and max(self.elems[0], other.elems[0]) < min(self.elems[1], other.elems[1])
            and bool(np.isin(self.offsets, other.offsets).any())
        )


@dataclass(frozen=True)
class _Read:
    """What an iteration read, which another one wrote, at a place of the kernel."""

    region: _Region
    now: Iteration
    iterations: tuple[int, int]  # that wrote it, and that read it
    at: str


@dataclass
class Carried:
    """In which iterations the tiles were written that were not made in these very iterations.

    An iteration may read what another one wrote ahead for it, as published kernels do that are pipelined by hand. What
    it also writes itself goes from each iteration to the next.
    """

    _made: dict[int, Iteration] = field(default_factory=dict)  # by tensor
    _written: dict[_Place, dict[object, tuple[_Region, Iteration, str]]] = field(default_factory=dict)
    _read: dict[_Place, list[_Read]] = field(default_factory=dict)

    def make(self, tensor: int, now: Iteration) -> None:
        """A tensor is made."""
        self._made[tensor] = now

    def read(self, view: View, now: Iteration) -> None:
        """A view of one logical tile is read."""
        place = view.tensor.number, view.start[0]
        for other, then, at in self._written.get(place, {}).values():
            if (iterations := _apart(then, now)) and other.meets(region := _region(view)):
                known = [read for read in self._read.get(place, ()) if read.now == now]
                self._read[place] = [*known, _Read(region, now, iterations, at)]

    def write(self, view: View, now: Iteration, at: str) -> None:
        """One is written, at a place of the kernel.

        Raises:
            KernelError: this iteration of an affine_range has read there what another one wrote.
        """
        place = view.tensor.number, view.start[0]
        if self._made.get(place[0]) == now and place not in self._written:
            return
        regions, region = self._written.setdefault(place, {}), _region(view)
        for read in self._read.get(place, ()):
            if read.now == now and read.region.meets(region):
                before, after = read.iterations
                raise wrong(
                    f"iteration {after} of an affine_range reads, and writes, what iteration {before} wrote at "
                    f"{read.at} to {view}, made at {view.tensor.made}; they may run in any order: use sequential_range"
                )
        for key in [key for key, (other, *_) in regions.items() if region.covers(other)]:
            del regions[key]
        regions[view.start, view.axes] = region, now, at


def _apart(then: Iteration, now: Iteration) -> tuple[int, int] | None:
    """The iterations, if these are two of one loop."""
    for (turn, before), (other, after) in zip(then, now, strict=False):
        if turn is not other:
            return None
        if before != after:
            return before, after
    return None


def _region(view: View) -> _Region:
    ends = [step * (count - 1) for (_, _, step), count in view.axes]
    low, high = (view.start[2] + sum(end for end in ends if (end < 0) == is_low) for is_low in (True, False))
    rows = sum(step * (count - 1) for (_, step, _), count in view.axes)
    return _Region(view, (view.start[1], view.start[1] + rows + 1), (low, high + 1))
