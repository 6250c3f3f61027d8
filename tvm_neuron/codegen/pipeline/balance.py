"""balance: the cut of a list of kernels into so many stages of which the longest is as short as can be."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


def balance(cost: Times, places: Sequence[int], stages: int) -> list[int]:
    """Cuts at `places` into `stages` stages; `cost[i, j]` is what a stage of the kernels i to j - 1 takes.

    Of cuts whose longest stages are alike, one with short stages before it.
    """
    bounds = [0, *places, cost.shape[1] - 1]
    table = cost[np.ix_(bounds, bounds)]
    best = table[0].copy()  # the longest stage of the best cut of all before each bound into so many stages
    best[0] = np.inf
    choices: list[NDArray[np.int64]] = []
    for _ in range(stages - 1):
        longest = np.maximum(best[:, None], table)
        choices.append(longest.argmin(axis=0))
        best = longest.min(axis=0)
    at = len(bounds) - 1
    cuts = []
    for choice in reversed(choices):
        at = int(choice[at])
        cuts.append(bounds[at])
    return cuts[::-1]
