"""sums_on_the_way: sums that can be taken as their elements are made, by the engine that makes these."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Kernel, Reduction
from tvm_neuron.schedule.linear import Linear

Axes = Mapping[Axis, Axis]  # of the kernel that makes elements, by those of the one that adds them up


def sums_on_the_way(kernels: Sequence[Kernel]) -> dict[Kernel, tuple[Kernel, Axes]]:
    """By kernel of arithmetic the next one, where that adds up all that it makes, as softmax does with exponentials."""
    found = {maker: (after, _same_axes(maker, after)) for maker, after in pairwise(kernels)}
    return {maker: (after, axes) for maker, (after, axes) in found.items() if axes}


def _same_axes(maker: Kernel, after: Kernel) -> Axes:
    """None where `after` reads something else, or on other partitions, than `maker` writes."""
    root = after.root
    if not isinstance(root, Reduction) or root.combine != "add" or root.load.tensor is not maker.out:
        return {}
    read = linear_indices(root.load.indices)
    if maker.root is not None or maker.by_dma or read is None or len(read) != len(maker.out_maps):
        return {}
    by: dict[Axis, Axis] = {}
    for there, here in zip(map(_terms, read), map(_terms, maker.out_maps), strict=True):
        if [there[0], *there[1].values()] != [here[0], *here[1].values()]:
            return {}
        for mine, its in zip(there[1], here[1], strict=True):
            if mine.extent != its.extent or by.setdefault(mine, its) is not its:
                return {}
    if any(axis not in by for axis in (*after.free, after.channel) if axis.extent > 1):
        return {}  # the same sum at several places
    lanes = [axis for axis in (by.get(after.channel, after.channel), maker.channel) if axis.extent > 1]
    every = {axis for axis in (maker.channel, *maker.free) if axis.extent > 1}
    return by if every == set(by.values()) and len(set(lanes)) <= 1 else {}


def _terms(part: Linear) -> tuple[int, dict[Axis, int]]:
    return part.const, {axis: step for axis, step in part.terms.items() if axis.extent > 1}
