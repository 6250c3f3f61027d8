"""WeightsMemory: what tensors leave of SBUF, handed out to weights, the part that was in use longest ago first.

Weights are asked for in the order of need, each as soon as its place is free: what comes into memory that was left
long before comes that long before its use.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.memory_plan import MemoryPlan
from tvm_neuron.allocation.place import Buffer
from tvm_neuron.codegen.emit.holder import Holder

_PINNED_SHARE = 16  # 1 / this of the memory above all tensors at most stays with what is needed again and again
_Piece = tuple[int, int, int]  # first byte, end, and how many bytes were handed out until it was left


class WeightsMemory(Holder):
    """The bytes from a plan's base to `end` of each partition, in which it keeps tensors, each for some steps.

    And those of `zones` below, by their first bytes, which are in use for some steps, too.

    Up to step `in_turns_until` weights only take what lies above all tensors till then, in turns: inputs that come
    by DMA meanwhile are needed sooner, and would wait for weights further ahead.
    """

    def __init__(
        self, plan: MemoryPlan, end: int, in_turns_until: int = 0, zones: Mapping[int, Buffer] | None = None
    ) -> None:
        super().__init__()
        self.end = end
        self.used = 0  # bytes that were ever handed out above all tensors
        self._first, self._extents = plan.base, plan.extents
        self.step, self._above = 0, plan.base + plan.extent_bytes  # the end of all tensors
        early = [plan.offsets[b.name] + b.size for b in plan.buffers if b.first <= in_turns_until]
        self._top = plan.base + aligned(max(early, default=0)) if in_turns_until else self._above
        self._in_turns_until = in_turns_until
        below = (zones or {}).items()
        taken = [*below, *((plan.base + plan.offsets[buffer.name], buffer) for buffer in plan.buffers)]
        self._begins = _by_step(taken, lambda buffer: buffer.first)
        self._ends = _by_step(taken, lambda buffer: buffer.last)
        self._given, self._pinned, self._next = 0, 0, self._top
        # What no tensor has in this step; where none was yet, weights would come from the start, before all inputs.
        self._pieces: list[_Piece] = [*((at, at + zone.size, -1) for at, zone in sorted(below)), (self._top, end, -1)]

    @property
    def capacity(self) -> int:
        """So many bytes lie together that no tensor takes in this step or later."""
        return self.end - (self._top if self.step < self._in_turns_until else self._first + self._extents[self.step])

    def capacity_until(self, step: int) -> int:
        """So many at most that none takes in this step or a later one up to `step`."""
        free = self._free_until(step)
        return max(end - aligned(first) for first, end in _joined(free))

    def begin(self, step: int) -> None:
        """Tensors that were used last before this step leave their memory, and others take theirs."""
        for first, end in self._ends.pop(step - 1, ()):
            self._set(first, end, self._given)
        for first, end in self._begins.get(step, ()):
            self._pieces = _without(self._pieces, first, end)
            self.drop(first, end)
        self.step = step
        found = [(self._first + self._extents[step], self.end, self._given)]
        for first, end, _ in self._pieces:
            found = _without(found, first, end)
        self._pieces = sorted([*self._pieces, *found])

    def keep(self, key: Hashable) -> None:
        """What lies there under the key is needed again: others are to take its place last."""
        first, end, _ = self._held[key]
        if end <= self.end:  # else no other ever does
            self._set(first, end, self._given)

    def take(self, size: int, until: int = 0) -> int:
        """Byte offset of `size` bytes, which no tensor takes up to step `until`."""
        places = self._next_place(size) or _places(self._free_until(until), size)
        assert places, f"{size} bytes asked of {self.capacity_until(until)} for weights"
        *_, at = min((left, at < self._top, at) for left, at in places)
        self._given += size
        self._next = at + size
        self._set(at, at + size, self._given)
        self.drop(at, at + size)
        self.used = max(self.used, at + size - self._above)
        return at

    def pin(self, size: int) -> int | None:
        """Offset of `size` bytes that are never handed out again; None if that took much of the memory from others."""
        if self._pinned + size > (self.end + self._pinned - self._above) // _PINNED_SHARE:
            return None
        self._pinned += aligned(size)
        self.end -= aligned(size)
        self._pieces = _without(self._pieces, self.end, self.end + aligned(size))
        self.drop(self.end, self.end + aligned(size))
        self.used = max(self.used, self.end + size - self._above)
        return self.end

    def _next_place(self, size: int) -> list[tuple[int, int]]:
        """Memory above the first tensors in turns, whatever is left of it."""
        if self.step >= self._in_turns_until:
            return []
        at = aligned(self._next)
        return [(0, at if at + size <= self.end else self._top)]

    def _free_until(self, step: int) -> list[_Piece]:
        """The pieces that no tensor takes in this step or a later one up to `step`."""
        if self.step < self._in_turns_until:
            return _without(self._pieces, 0, self._top)
        found = self._pieces
        for later in range(self.step + 1, step + 1):
            for first, end in self._begins.get(later, ()):
                found = _without(found, first, end)
        return found

    def _set(self, first: int, end: int, left: int) -> None:
        self._pieces = sorted([*_without(self._pieces, first, end), (first, end, left)])


def _without(pieces: Sequence[_Piece], first: int, end: int) -> list[_Piece]:
    """The pieces but for the bytes [first, end)."""
    parts = [part for a, b, left in pieces for part in ((a, min(b, first), left), (max(a, end), b, left))]
    return [(a, b, left) for a, b, left in parts if a < b]


def _joined(pieces: Sequence[_Piece]) -> list[tuple[int, int]]:
    """What lies together of them."""
    found: list[tuple[int, int]] = []
    for first, end, _ in pieces:
        if found and found[-1][1] == first:
            found[-1] = found[-1][0], end
        else:
            found.append((first, end))
    return found


def _places(pieces: Sequence[_Piece], size: int) -> list[tuple[int, int]]:
    """Where `size` bytes could begin, and when the last of them was left."""
    found = []
    for number, (first, end, latest) in enumerate(pieces):
        at, reached = aligned(first), end
        for follower, its_end, left in pieces[number + 1 :]:
            if reached >= at + size or follower != reached:
                break
            reached, latest = its_end, max(latest, left)
        if reached >= at + size:
            found.append((latest, at))
    return found


def _by_step(
    buffers: Iterable[tuple[int, Buffer]], step_of: Callable[[Buffer], int]
) -> dict[int, list[tuple[int, int]]]:
    """The bytes of buffers with their first bytes, by a step of each."""
    found: dict[int, list[tuple[int, int]]] = {}
    for first, buffer in buffers:
        found.setdefault(step_of(buffer), []).append((first, first + aligned(buffer.size)))
    return found
