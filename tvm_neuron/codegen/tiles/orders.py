"""orders: the kernels of a stage with each group of tiles in the order that fits in memory, by itself."""

from collections.abc import Iterator, Sequence
from functools import cache

from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.reorder import Reordering
from tvm_neuron.codegen.tiles.usage import usage
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel

_FULL = 0.98  # of the memory for tensors, up to where they likely find room side by side


def orders(
    stage: Stage, groups: Sequence[range], shares: Sequence[float], tensors_bytes: int, ahead: int, device: Device
) -> Iterator[list[Kernel]]:
    """The stage's kernels, those of each group reordered with the largest of the shares of memory with which it fits.

    Then with smaller shares, for tensors that find no room side by side. A group that fits with none stays as it is.
    """
    now = usage(stage.kernels, stage.partition_of, stage.dtypes, stage.in_dram())

    @cache
    def reordering(group: range) -> Reordering:
        return Reordering(stage.kernels, group, now, device)

    @cache
    def fitting(group: range, share: float) -> list[Kernel]:
        """The group's kernels in such an order; none where too much is alive at once."""
        kernels = reordering(group).reordered(int(share * tensors_bytes), ahead)
        alive = usage(kernels, stage.partition_of, stage.dtypes, stage.in_dram()).alive[group.start : group.stop]
        return kernels[group.start : group.stop] if max(alive) <= _FULL * tensors_bytes else []

    last = stage.kernels
    for first, _ in enumerate(shares):
        kernels = list(stage.kernels)
        for group in groups:
            found = (fitting(group, share) for share in shares[first:])
            kernels[group.start : group.stop] = next(filter(None, found), kernels[group.start : group.stop])
        if kernels != last:
            yield kernels
        last = kernels
