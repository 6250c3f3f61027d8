"""The cut: against every other one, on random costs; where cuts can be."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from tvm_neuron.codegen.pipeline.balance import balance


@pytest.mark.parametrize("seed", range(20))
def test_no_cut_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 9))
    cost = rng.uniform(1, 2, (count + 1, count + 1))
    cost[np.tril_indices(count + 1)] = np.inf
    places = sorted(rng.choice(np.arange(1, count), int(rng.integers(1, count)), replace=False).tolist())
    for stages in range(1, len(places) + 2):
        found = balance(cost, places, stages)
        assert len(found) == stages - 1
        assert set(found) <= set(places)
        best = min(longest(cost, cuts, count) for cuts in combinations(places, stages - 1))
        assert longest(cost, tuple(found), count) == best


def longest(cost: np.ndarray, cuts: tuple[int, ...], count: int) -> float:
    return max(float(cost[bound]) for bound in pairwise((0, *cuts, count)))
