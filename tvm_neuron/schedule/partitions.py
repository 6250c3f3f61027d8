"""partitions: dimensions on the partitions that several axes step through, as heads of 64 channels each."""

from itertools import product
from math import gcd

from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.tiling import PARTITIONS, Segment, runs


def stepping(part: Linear, along: Axis) -> dict[Axis, int]:
    """The axes that a partition index moves with beside `along`, and how far each step goes."""
    return {axis: step for axis, step in part.terms.items() if axis is not along}


def across(part: Linear) -> dict[Axis, int]:
    """The axes that a partition index moves with from partition to partition; others move by whole chunks of them."""
    return {axis: step for axis, step in part.terms.items() if step % PARTITIONS}


def period(step: int) -> int:
    """After how many steps an axis is back on the same partition, some chunks of 128 further on."""
    return PARTITIONS // gcd(step, PARTITIONS)


def starts(part: Linear, along: Axis) -> list[int]:
    """The partitions on which position 0 of `along` lies, over all values of the other axes."""
    others = stepping(part, along)
    turns = product(*(range(min(axis.extent, period(step))) for axis, step in others.items()))
    moved = (sum(step * turn for step, turn in zip(others.values(), at, strict=True)) for at in turns)
    return list(dict.fromkeys((part.const + by) % PARTITIONS for by in moved))


def is_addressable(part: Linear, along: Axis) -> bool:
    """Whether engines reach `along` in as few runs of partitions as if it lay there alone, from partition 0."""
    is_plain = along.extent == 1 or part.terms.get(along) == 1
    others = stepping(part, along)
    if not is_plain or any(step < 0 for step in others.values()):
        return False
    if any(step % PARTITION_START_STEP for step in (part.const, *others.values())):
        return False
    return len(runs(along.extent, starts(part, along))) == len(runs(along.extent, [0]))


def turns(low: int, high: int, step: int) -> list[Segment]:
    """[low, high) of an axis that moves partitions by `step`, one value each: a segment for each starting partition.

    The values of a segment are `period(step)` apart.
    """
    every = period(step)
    return [(low + turn, 1, -(-(high - low - turn) // every)) for turn in range(min(every, high - low))]
