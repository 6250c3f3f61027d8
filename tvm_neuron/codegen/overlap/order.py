"""orders_of_need: kernels in the orders in which engines that work side by side would take them."""

from collections import Counter
from collections.abc import Sequence

from tvm_neuron.codegen.overlap.part import Part
from tvm_neuron.isa.engines import COMPUTE

SHIFTS = (4, 5, 6, 7, 8, 10, 12, 16, 20, 30)  # kernels by which each part of the batch stays behind the one before it
WINDOW = 60  # kernels of the model that are at work at once, so that tensors do not live for long
_LATENCY_PS = 300_000  # from the last instruction of a kernel to the first that reads its result


def orders_of_need(parts: Sequence[Part], weights_bytes: int) -> list[list[Part]]:
    """The parts, each engine taking the earliest that can start on it; in several orders, the quickest first.

    Parts of the batch should be at different work, one at its attention while others are at dense layers; how far
    apart they are best is found by trying. Kernels of which some parts are still to come have weights of at most
    `weights_bytes`.
    """
    found = [_List(parts, weights_bytes, shift).run() for shift in SHIFTS]
    return [list(clock.done) for clock in sorted(found, key=lambda clock: clock.end)]


class Clock:
    """When each engine is free, the weights of each kernel are there, and each part is complete; in ps."""

    def __init__(self) -> None:
        self.free = dict.fromkeys(COMPUTE, 0)
        self.loaded = 0  # all weights that were asked for
        self.arrived: dict[int, int] = {}
        self.done: dict[Part, int] = {}

    @property
    def end(self) -> int:
        """When all that was run is complete."""
        return max(self.done.values(), default=0)

    def ready(self, part: Part) -> int:
        """When all that the part comes after is complete."""
        return max((self.done[other] + _LATENCY_PS for other in part.after), default=0)

    def start(self, part: Part, ready: int) -> int:
        """When it could start on the first engine that it needs; weights come in the order of need, well before."""
        if part.load_ps:
            ready = max(ready, self.arrived.get(part.number, self.loaded + part.load_ps))
        engine = next((engine for engine in COMPUTE if part.work[engine]), None)
        return max(ready, self.free[engine]) if engine else ready

    def run(self, part: Part, ready: int) -> None:
        """Takes the engines for the part, which work on its tiles one after the other."""
        start = end = self.start(part, ready)
        if part.number not in self.arrived:
            self.loaded = self.arrived[part.number] = self.loaded + part.load_ps
        for engine in COMPUTE:
            if part.work[engine]:
                self.free[engine] = end = max(end, max(start, self.free[engine]) + part.work[engine])
        self.done[part] = end


class _List:
    """The parts that are to come, and those of them that wait for nothing but engines."""

    def __init__(self, parts: Sequence[Part], weights_bytes: int, shift: int) -> None:
        self.parts, self.weights_bytes = parts, weights_bytes
        self.clock = Clock()
        self.begun: dict[int, int] = {}  # the weights of kernels of which some parts were taken and some not
        self.coming = Counter(part.number for part in parts)  # parts of each kernel
        places = {low: place for place, low in enumerate(sorted({part.low for part in parts}))}
        self.turn = {part: (part.number + shift * places[part.low], part.low) for part in parts}
        self.waits = {part: len(part.after) for part in parts}
        self.followers: dict[Part, list[Part]] = {part: [] for part in parts}
        for part in parts:
            for other in part.after:
                self.followers[other].append(part)
        self.ready = {part: 0 for part in parts if not part.after}

    def run(self) -> Clock:
        """Takes all parts."""
        for oldest in self.parts:
            while oldest not in self.clock.done:
                self._take(self._next(oldest))
        return self.clock

    def _next(self, oldest: Part) -> Part:
        """The part that starts first, transfers before all, so that they don't wait for memory in use."""
        best, chosen = self._rank(oldest), oldest
        held = sum(self.begun.values())
        for part in self.ready:
            is_short = part.number not in self.begun and self.coming[part.number] > 1
            if part.number > oldest.number + WINDOW or (
                part.weights and is_short and held + part.weights > self.weights_bytes
            ):
                continue
            rank = self._rank(part)
            if rank < best:
                best, chosen = rank, part
        return chosen

    def _rank(self, part: Part) -> tuple[int, bool, tuple[int, int]]:
        return self.clock.start(part, self.ready[part]), any(part.work.values()), self.turn[part]

    def _take(self, part: Part) -> None:
        self.clock.run(part, self.ready.pop(part))
        self.coming[part.number] -= 1
        self.begun[part.number] = part.weights
        if not self.coming[part.number]:
            del self.begun[part.number]
        for follower in self.followers[part]:
            self.waits[follower] -= 1
            if not self.waits[follower]:
                self.ready[follower] = self.clock.ready(follower)
