"""reorder: the kernels of tiles in an order in which no engine waits long for another while it has other work.

List scheduling: of the next few kernels in their order, the one that could begin first comes next. What is far ahead
comes a little later, so that tiles are finished, and so that not more of them are begun than there is memory for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby

from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.tiles.group import stationary_bytes
from tvm_neuron.codegen.tiles.usage import Usage
from tvm_neuron.hw import Device
from tvm_neuron.isa.engines import COMPUTE
from tvm_neuron.schedule.expr import Apply, Load
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim.clock import clock_hz, duration_ps

_FIRST_PART = 4  # 1 / this of a kernel's work is done when the engine after it may begin


def reorderable(
    kernels: Sequence[Kernel], untiled: Set[Kernel], partition_of: Mapping[Tensor, int], ring_bytes: int
) -> list[range]:
    """The steps of tiles whose weights stay while they run: others would come again for a tile that was put off."""
    found = []
    for is_fixed, group in groupby(range(len(kernels)), lambda step: kernels[step] in untiled):
        steps = list(group)
        roots = [(kernels[s].root, kernels[s]) for s in steps]
        once = {id(root.weights): kernel for root, kernel in roots if isinstance(root, Contraction)}
        if not is_fixed and stationary_bytes(list(once.values()), partition_of) <= ring_bytes:
            found.append(range(steps[0], steps[-1] + 1))
    return found


class Reordering:
    """The kernels of some steps, with all that does not depend on the order in which they come."""

    def __init__(self, kernels: Sequence[Kernel], steps: range, now: Usage, device: Device) -> None:
        first, end, life = steps.start, steps.stop, now.life
        self.every, self.steps, self.kernels = kernels, steps, kernels[first:end]
        self.sizes = {t: size for t, size in now.sizes.items() if first <= life[t][0] and life[t][1] < end}
        others = now.sizes.keys() - self.sizes.keys()
        self.beside = sum(now.sizes[t] for t in others if life[t][0] < end and first <= life[t][1])
        self.needed = list(_needed(self.kernels))
        self.forms = [_forms(kernel) for kernel in self.kernels]
        self.work = [[work_of(form, device) for form in forms] for forms in self.forms]
        self.latency = duration_ps(device.instruction_latency_cycles, clock_hz(device, "act"))
        self.uses = Counter(tensor for kernel in self.kernels for tensor in kernel.tensors)
        self._before_ps = self._ordered(0, 1)[1]

    def reordered(self, room_bytes: int, ahead: int) -> list[Kernel]:
        """All kernels, those of the steps in such an order where that takes less time.

        Of the next kernels, `ahead` are looked at. What comes ahead of its order leaves no more than `room_bytes` of
        each partition alive. Transfers keep their place.
        """
        ordered, after_ps = self._ordered(room_bytes - self.beside, ahead)
        part = ordered if after_ps < self._before_ps else self.kernels
        return [*self.every[: self.steps.start], *part, *self.every[self.steps.stop :]]

    def _ordered(self, room_bytes: int, ahead: int) -> tuple[list[Kernel], int]:
        """The kernels of the steps, and when all are done."""
        order = _Order(self, room_bytes, ahead)
        return order.run(), max(order.done.values())


@dataclass
class _Order:
    given: Reordering
    room_bytes: int
    ahead: int
    done: dict[int, int] = field(default_factory=dict)  # when the kernels that were placed are done, ps
    free: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COMPUTE, 0))  # from when on engines are
    alive: set[Tensor] = field(default_factory=set)

    def run(self) -> list[Kernel]:
        """All kernels, placed."""
        given = self.given
        self.kernels, self.sizes, self.needed, self.latency = given.kernels, given.sizes, given.needed, given.latency
        self.work = given.work if self.ahead > 1 else [works[:1] for works in given.work]
        self.uses = given.uses.copy()
        pending = list(range(len(self.kernels)))
        found = []
        while pending:
            place = min(self._possible(pending), key=lambda place: self._cost_ps(pending[place], place))
            number = pending.pop(place)
            form = min(range(len(self.work[number])), key=lambda form: self._run(number, form)[1])
            self._place(number, form)
            found.append(given.forms[number][form])
        return found

    def _possible(self, pending: Sequence[int]) -> Iterator[int]:
        """The places of kernels that may come next."""
        yield 0
        if self.kernels[pending[0]].by_dma:
            return
        taken = sum(self.sizes.get(tensor, 0) for tensor in self.alive)
        for place, number in enumerate(pending[1 : self.ahead], 1):
            kernel = self.kernels[number]
            if kernel.by_dma or not self.done.keys() >= self.needed[number]:
                continue
            if taken + sum(self.sizes.get(t, 0) for t in kernel.tensors if t not in self.alive) <= self.room_bytes:
                yield place

    def _cost_ps(self, number: int, place: int) -> int:
        """When a kernel could begin, later the more it comes ahead."""
        starts = [self._start_ps(number, work) for work in self.work[number]]
        return min(starts) + place * self.latency

    def _start_ps(self, number: int, work: Mapping[str, int]) -> int:
        """When what it needs is done, and so is its first engine with all before."""
        ready = max((self.done[other] for other in self.needed[number]), default=0)
        return max(ready, next((self.free[engine] for engine in COMPUTE if work[engine]), 0))

    def _run(self, number: int, form: int) -> tuple[dict[str, int], int]:
        """When engines are done with a kernel, and it is: each begins after a part of the one before."""
        work = self.work[number][form]
        begun = ended = self._start_ps(number, work)
        free = dict(self.free)
        for engine, ps in work.items():
            if ps:
                part = ps // _FIRST_PART
                free[engine] = max(max(free[engine], begun) + ps, ended + part)
                begun, ended = begun + part + self.latency, free[engine] + self.latency
        return free, ended

    def _place(self, number: int, form: int) -> None:
        self.free, self.done[number] = self._run(number, form)
        tensors = self.kernels[number].tensors
        self.alive.update(tensors)
        self.uses.subtract(tensors)
        self.alive.difference_update(tensor for tensor in tensors if not self.uses[tensor])


def _forms(kernel: Kernel) -> list[Kernel]:
    """The kernel for POOL and, if it copies floating-point numbers, for ACT."""
    is_copy = kernel.root is None and not kernel.by_dma and isinstance(kernel.expr, Load)
    if not is_copy or {tensor.dtype for tensor in kernel.tensors} - {"float32", "float16", "bfloat16"}:
        return [kernel]
    return [kernel, replace(kernel, expr=Apply("copy", (kernel.expr,)))]


def _needed(kernels: Sequence[Kernel]) -> Iterator[set[int]]:
    """For each kernel those before it that must be done: they write what it reads, or use what it writes."""
    writer: dict[Tensor, int] = {}
    readers: dict[Tensor, list[int]] = {}
    for number, kernel in enumerate(kernels):
        found = {writer[tensor] for tensor in kernel.tensors if tensor in writer} | {*readers.get(kernel.out, ())}
        for tensor in kernel.sources():
            readers.setdefault(tensor, []).append(number)
        writer[kernel.out], readers[kernel.out] = number, []
        yield found
