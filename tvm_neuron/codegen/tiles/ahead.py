"""Ahead: how the tiles of a group overlap, and where the kernels of each are divided for that."""

from collections.abc import Sequence, Set
from enum import Enum

from tvm_neuron.codegen.tiles.rows import Group
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.tensor import Tensor

Kernels = Sequence[Kernel]


class Ahead(Enum):
    """When what a tile needs is asked for from DRAM; the earlier, the more of SBUF is held for it.

    Where the value is below 1, the tile's first kernels run after this share of the work of the tile before it, so that
    engines which the first ones keep waiting have other work.
    """

    TURNS = "when the tile before it has read its own; its first half then takes turns with the other's second", 1.0
    TILE = "before the tile before it begins", 1.0
    EARLY = "when the tile before it has read its own", 0.25
    HALF = "when the tile before it has read its own", 0.5
    LATE = "when the tile before it has read its own", 0.75
    READ = "when the tile before it has read its own", 1.0
    NONE = "when it begins", 1.0

    @property
    def before_next(self) -> float:
        """Share of a tile's work, but for its first kernels, that comes before the first kernels of the next."""
        return self.value[1]


def halves(group: Group, carried: Set[Tensor]) -> tuple[Kernels, Kernels] | None:
    """The kernels in two parts with about as many sums of products in each; None where there is no border for that.

    Of the `carried` tensors a tile leaves rows for the next one. The half that begins one also finishes it: the next
    tile's first half runs before this tile's second one is done.
    """
    sums = [n for n, kernel in enumerate(group.kernels) if isinstance(kernel.root, Contraction)]
    spans = [span for tensor, span in _spans(group.kernels).items() if tensor in carried]
    borders = [n for n in sums[1:] if not any(first < n <= last for first, last in spans)]
    if not borders:
        return None
    border = min(borders, key=lambda n: abs(2 * sums.index(n) - len(sums)))
    return group.kernels[:border], group.kernels[border:]


def last_reader(group: Group) -> int:
    """How many kernels there are up to the last that reads what comes from DRAM."""
    readers = (n for n, kernel in enumerate(group.kernels, 1) if not group.brought.isdisjoint(kernel.sources()))
    return max(readers, default=0)


def first_kernels(group: Group) -> int:
    """How many kernels there are up to the last that reads what comes from DRAM, and the PE array's next work."""
    found = last_reader(group)
    while found < len(group.kernels) and isinstance(group.kernels[found].root, Reduction | None):
        found += 1
    return found


def _spans(kernels: Kernels) -> dict[Tensor, tuple[int, int]]:
    """From the first kernel that touches a tensor to the last that writes it."""
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for number, kernel in enumerate(kernels):
        last[kernel.out] = number
        for tensor in kernel.tensors:
            first.setdefault(tensor, number)
    return {tensor: (first[tensor], number) for tensor, number in last.items()}
