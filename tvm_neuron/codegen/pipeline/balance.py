"""balance: the cut of a list of kernels over so many cores whose slowest stage is as quick as can be."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Choice = NDArray[np.int64]
Cut = tuple[tuple[int, ...], tuple[int, ...]]  # where, and how many cores each stage gets


def balance(cost: Times, places: Sequence[int], cores: int, most: int) -> Cut:
    """Cuts at some of `places`, and how many cores each stage gets; `cost[i, j]` is what the kernels i to j - 1 take.

    At most `most` cores take inputs in turn on one stage, each of which is through with one in `cost` but all together
    in that part of it; never all of several on all kernels, which is not a pipeline. Of cuts whose slowest stages are
    alike, one with more stages.
    """
    bounds = [0, *places, cost.shape[1] - 1]
    table = cost[np.ix_(bounds, bounds)]
    if cores > 1:
        table[0, -1] = np.inf
    start = np.full(len(bounds), np.inf)
    start[0] = 0.0
    best = [start]  # by number of cores: the slowest stage of the best cut of all kernels before each bound
    choices: list[tuple[Choice, Choice]] = []  # by the same and the bound: where its last stage starts, and its cores
    for number in range(1, cores + 1):
        replicas_to = min(most, number)
        slowest = np.stack([np.maximum(best[number - r][:, None], table / r) for r in range(1, replicas_to + 1)])
        begins = slowest.argmin(axis=1)
        options = slowest.min(axis=1)
        replicas = options.argmin(axis=0)
        every = np.arange(len(bounds))
        best.append(options[replicas, every])
        choices.append((begins[replicas, every], replicas + 1))
    cuts: list[int] = []
    counts: list[int] = []
    at, left = len(bounds) - 1, cores
    while left:
        begin, replica = (int(choice[at]) for choice in choices[left - 1])
        cuts.append(bounds[begin])
        counts.append(replica)
        at, left = begin, left - replica
    return tuple(cuts[-2::-1]), tuple(counts[::-1])
