"""usage: how much of each SBUF partition tensors take at each step, and between one step and the next."""

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from tvm_neuron.allocation.buffers import steps_of
from tvm_neuron.allocation.in_place import Life, in_place, may_share
from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

NEAR = 12  # steps; what is not touched for longer is idle


@dataclass(frozen=True)
class Usage:
    """`alive[s]` bytes while kernel s runs, `crossing[s]` between s - 1 and s; each tensor's first and last step."""

    alive: list[int]
    crossing: list[int]
    life: dict[Tensor, tuple[int, int]]
    sizes: dict[Tensor, int]  # bytes of each partition, of those that are not in DRAM
    touched: dict[Tensor, list[int]]  # the steps of kernels that read or write it

    @cached_property
    def across(self) -> list[list[Tensor]]:
        """The tensors of `sizes` that are alive between s - 1 and s."""
        found: list[list[Tensor]] = [[] for _ in self.crossing]
        for tensor in self.sizes:
            begin, end = self.life[tensor]
            for step in range(begin + 1, end + 1):
                found[step].append(tensor)
        return found

    @cached_property
    def pauses(self) -> list[tuple[int, int, Tensor]]:
        """Steps between which nothing touches a tensor, more than `NEAR` apart; those of the largest first."""
        by_size = sorted(self.sizes.items(), key=lambda pair: -pair[1])
        pairs = ((pair, tensor) for tensor, size in by_size if size for pair in pairwise(self.touched[tensor]))
        return [(before, after, tensor) for (before, after), tensor in pairs if after - before > NEAR]

    def idle(self, first: int, last: int, near: int) -> dict[int, list[Tensor]]:
        """By step, from `first` to `last`: tensors alive before and after it, and untouched in the `near` steps from it
        on, which are at least `NEAR`; largest first.
        """
        found: dict[int, list[Tensor]] = {step: [] for step in range(first, last + 1)}
        for before, after, tensor in self.pauses:
            for step in range(max(first, before + 1), min(last, after - near) + 1):
                found[step].append(tensor)
        return found

    def least_with_tiles(self, first: int, end: int, in_dram: Container[Tensor]) -> int:
        """What is alive at least while the kernels from step `first` to `end` run in tiles, however many there are.

        When the last one begins, all that they read of others is still there, and all that others read has been begun.
        """
        return sum(self.sizes[t] for t in {*self.across[first], *self.across[end]} if t not in in_dram)

    def most_with(
        self, kernels: Sequence[Kernel], first: int, end: int, partition_of: Mapping[Tensor, int],
        dtypes: Mapping[Tensor, str], in_dram: Container[Tensor],
    ) -> int:  # fmt: skip
        """The most bytes alive while these kernels run in the place of those from step `first` to `end`.

        That of `in_dram` takes none. What other kernels touch before or after is alive from the first, or to the last.
        """
        touched, life = steps_of(kernels), {}
        for tensor, steps in touched.items():
            begin, last = self.life.get(tensor, (first, first))
            life[tensor] = (-1 if begin < first else steps[0], len(kernels) if last >= end else steps[-1])
        sizes = {t: bytes_on_chip(dtypes[t], partition_of[t], t.shape) for t in touched if t not in in_dram}
        around = (t for t in self.across[first] if self.life[t][1] >= end)
        crossing = sum(self.sizes[t] for t in around if t not in touched and t not in in_dram)
        return max(_alive(kernels, life, sizes, partition_of, dtypes, in_dram)[0], default=0) + crossing


def usage(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str],
    in_dram: Container[Tensor], apart: Set[Tensor] = frozenset(),
) -> Usage:  # fmt: skip
    """Of the tensors that are not in DRAM; those `apart` are, but cross between kernels that touch them soon again."""
    touched = steps_of(kernels)
    life = {tensor: (steps[0], steps[-1]) for tensor, steps in touched.items()}
    sizes = {t: bytes_on_chip(dtypes[t], partition_of[t], t.shape) for t in touched if t not in in_dram}
    alive, crossing = _alive(kernels, life, sizes, partition_of, dtypes, in_dram)
    for tensor in touched.keys() & apart:
        size = bytes_on_chip(dtypes[tensor], partition_of[tensor], tensor.shape)
        for before, after in pairwise(touched[tensor]):
            if after - before < NEAR:
                crossing[before + 1 : after + 1] = [bytes_ + size for bytes_ in crossing[before + 1 : after + 1]]
    return Usage(alive, crossing, life, sizes, touched)


def _alive(
    kernels: Sequence[Kernel], life: Life, sizes: Mapping[Tensor, int], partition_of: Mapping[Tensor, int],
    dtypes: Mapping[Tensor, str], in_dram: Container[Tensor],
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Bytes while each kernel runs, and before each and after the last."""
    begins, ends = [0] * (len(kernels) + 1), [0] * (len(kernels) + 1)
    shared = [0] * len(kernels)
    for tensor, size in sizes.items():
        first, last = life[tensor]
        begins[max(0, first)] += size
        ends[last] += size
    for tensor in in_place(may_share(kernels, life, partition_of, dtypes), in_dram):
        shared[life[tensor][0]] = sizes[tensor]
    begun, ended = list(accumulate(begins)), list(accumulate(ends))
    alive = [begun[s] - (ended[s - 1] if s else 0) - shared[s] for s in range(len(kernels))]
    return alive, [0, *(begun[s - 1] - ended[s - 1] for s in range(1, len(kernels) + 1))]


def worth_spilling(idle: list[Tensor], now: Usage, end: int, most: float) -> set[Tensor]:
    """The largest of the idle tensors, until the others leave enough room."""
    found: set[Tensor] = set()
    crossing = now.crossing[end]
    for tensor in idle:
        if crossing <= most:
            break
        found.add(tensor)
        crossing -= now.sizes[tensor]
    return found
