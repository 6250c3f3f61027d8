"""run_amid_parts: tiles of heads run between parts of the layers that wait for their weights.

A head as a whole amid such layers works for longer than memory holds weights ahead: DRAM stands still meanwhile, and
the PE array later. In parts, both have work all the time.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from tvm_neuron.codegen.kernels.channels import cut_channels
from tvm_neuron.codegen.overlap.amid_weights import heads_of
from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.codegen.overlap.work import ENGINES, load_ps, store_ps, work_of
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps


def run_amid_parts(stage: Stage, device: Device) -> Stage:
    """The stage; what its last contraction does not need comes amid parts of those before it that wait for weights.

    That is so from the first such kernel on, and from the waiting contractions right before it; all stays where they
    wait for no longer than memory holds weights ahead.
    """
    kernels = stage.kernels
    last = max((n for n, kernel in enumerate(kernels) if isinstance(kernel.root, Contraction)), default=0)
    numbers = {number for head in heads_of(kernels[: last + 1]) for number in head}
    first = min(numbers, default=last)
    first -= sum(1 for _ in takewhile(lambda kernel: not _is_quick(kernel, device), reversed(kernels[:first])))
    parts = list(_parts(stage, range(first, last + 1), device))
    heads = [part for part in parts if part.number in numbers]
    others = [part for part in parts if part.number not in numbers]
    order = _Order(stage, device)
    if not heads or sum(max(0, part.load_ps - part.work["pe"]) for part in others) <= order.ahead:
        return stage
    find_dependences(parts, stage.partition_of)
    found = [part.kernel for part in order.run(heads, others)]
    return replace(stage, kernels=[*kernels[:first], *found, *kernels[last + 1 :]])


def _is_quick(kernel: Kernel, device: Device) -> bool:
    """Whether its weights come sooner than the PE array is done with it."""
    return isinstance(kernel.root, Contraction) and load_ps(kernel, device) <= work_of(kernel, device)["pe"]


def _parts(stage: Stage, numbers: range, device: Device) -> Iterator[Part]:
    """These kernels; contractions with weights of their own in parts of 128 output channels.

    What they store counts with their weights. Weights by which several kernels multiply are there already.
    """
    uses = Counter(id(k.root.weights) for k in stage.kernels if isinstance(k.root, Contraction))
    for number in numbers:
        kernel = stage.kernels[number]
        is_single = isinstance(kernel.root, Contraction) and uses[id(kernel.root.weights)] == 1
        is_cut = is_single and _is_plain(kernel)
        for part in cut_channels(kernel, kernel.channel.extent // PARTITIONS) if is_cut else [kernel]:
            dram_ps = store_ps(part, stage.dtypes, device) + (load_ps(part, device) if is_single else 0)
            yield Part(part, number, 0, work_of(part, device), load_ps=dram_ps)


def _is_plain(kernel: Kernel) -> bool:
    """Whether each of its output channels has a column of weights of its own, to which all channels contribute."""
    root = kernel.root
    return isinstance(root, Contraction) and not (root.side or root.has_zeros or root.scale)


class _Order:
    """When each engine is free, the DRAM has brought or taken all that it was asked to, and each part is done; ps."""

    def __init__(self, stage: Stage, device: Device) -> None:
        # How long DRAM works at most for what the PE array does not need yet, as it has before the first part.
        self.ahead = stage.tuning.weights_bytes(device) * device.partitions * 10**12 // device.dram_bytes_per_second
        self.latency = duration_ps(device.instruction_latency_cycles, clock_hz(device, "act"))
        self.store_latency = duration_ps(device.dma_start_ns, clock_hz(device, "dma"))
        self.free = dict.fromkeys(ENGINES, 0)
        self.dram = -self.ahead
        self.done: dict[Part, int] = {}

    def run(self, heads: Sequence[Part], others: Sequence[Part]) -> Iterator[Part]:
        """All parts: those of heads, in their order, where the next of the others would start later.

        What stores a result comes when that is likely done: what it reads keeps its memory, for which others would
        wait.
        """
        pending, stores = deque(heads), deque[Part]()
        for part in others:
            while pending and self._is_ready(pending[0]):
                is_due = part is others[-1] or not self._is_ready(part)
                if not is_due and self._start_ps(pending[0]) >= self._start_ps(part):
                    break
                head = pending.popleft()
                self._place(head)
                if head.kernel.out.kind == "output" and head.kernel.by_dma:
                    stores.append(head)
                else:
                    yield from self._stored(stores, head)
                    yield head
            self._place(part)
            yield from self._stored(stores, part)
            yield part
        yield from stores

    def _stored(self, stores: deque[Part], part: Part) -> Iterator[Part]:
        """Of these those that are likely done, and all up to one that the part comes after."""
        while stores and (self.done[stores[0]] <= self.free["pe"] or not set(stores).isdisjoint(part.after)):
            yield stores.popleft()

    def _is_ready(self, part: Part) -> bool:
        return all(other in self.done for other in part.after)

    def _start_ps(self, part: Part) -> int:
        """When what it needs is done and has come, and its first engine is free; of no matter for what DMA does."""
        engine = next((engine for engine in ENGINES if part.work[engine]), None)
        if engine is None:
            return -1
        ready = max((self.done[other] + self.latency for other in part.after), default=0)
        return max(ready, self.free[engine], self.dram + part.load_ps if part.load_ps else 0)

    def _place(self, part: Part) -> None:
        start = self._start_ps(part)
        self.dram = max(self.dram, self.free["pe"] - self.ahead) + part.load_ps
        made = max((self.done[other] for other in part.after), default=0)
        end = max(self.dram, made + self.store_latency + part.load_ps) if part.kernel.by_dma else max(start, made)
        for engine in ENGINES:
            if part.work[engine]:
                self.free[engine] = end = max(end, max(start, self.free[engine]) + part.work[engine])
        self.done[part] = end
