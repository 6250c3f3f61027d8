"""in_order_of_need: kernels in the order in which engines that work side by side would take them."""

from collections import Counter
from collections.abc import Sequence

from tvm_neuron.codegen.overlap.part import Part
from tvm_neuron.codegen.overlap.work import ENGINES

WINDOW = 20  # kernels of the model that are at work at once, so that tensors do not live for long
_LATENCY_PS = 300_000  # from the last instruction of a kernel to the first that reads its result


def in_order_of_need(parts: Sequence[Part], weights_bytes: int) -> list[Part]:
    """The parts, each engine taking the earliest that can start on it, first the first of the batch.

    Kernels of which some parts are still to come have weights of at most `weights_bytes`.
    """
    left = dict.fromkeys(parts)
    coming = Counter(part.number for part in parts)  # parts of each kernel
    begun: dict[int, int] = {}  # the weights of kernels of which some parts were taken and some not
    clock = _Clock()
    while left:
        oldest = next(iter(left))
        best, chosen = clock.rank(oldest), oldest
        held = sum(begun.values())
        for part in left:
            if part.number > oldest.number + WINDOW:
                break
            is_short = part.number not in begun and coming[part.number] > 1 and held + part.weights > weights_bytes
            if not all(other in clock.done for other in part.after) or (is_short and part.weights):
                continue
            rank = clock.rank(part)
            if rank < best:
                best, chosen = rank, part
        clock.run(chosen)
        del left[chosen]
        coming[chosen.number] -= 1
        begun[chosen.number] = chosen.weights
        if not coming[chosen.number]:
            del begun[chosen.number]
    return list(clock.done)


class _Clock:
    """When each engine is free, the weights of each kernel are there, and each part is complete; in ps."""

    def __init__(self) -> None:
        self.free = dict.fromkeys(ENGINES, 0)
        self.loaded = 0  # all weights that were asked for
        self.arrived: dict[int, int] = {}
        self.done: dict[Part, int] = {}

    def rank(self, part: Part) -> tuple[int, bool, int, int]:
        """Less for one that should come first; transfers before all, so that they don't wait for memory in use."""
        return self._start(part), any(part.work.values()), part.low, part.number

    def run(self, part: Part) -> None:
        """Takes the engines for the part, which work on its tiles one after the other."""
        start = end = self._start(part)
        if part.number not in self.arrived:
            self.loaded = self.arrived[part.number] = self.loaded + part.load_ps
        for engine in ENGINES:
            if part.work[engine]:
                self.free[engine] = end = max(end, max(start, self.free[engine]) + part.work[engine])
        self.done[part] = end

    def _start(self, part: Part) -> int:
        """When it could start on the first engine that it needs; weights come in the order of need, well before."""
        ready = max((self.done[other] + _LATENCY_PS for other in part.after), default=0)
        if part.load_ps:
            ready = max(ready, self.arrived.get(part.number, self.loaded + part.load_ps))
        engine = next((engine for engine in ENGINES if part.work[engine]), None)
        return max(ready, self.free[engine]) if engine else ready
