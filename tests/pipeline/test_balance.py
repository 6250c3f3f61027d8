"""The cut: against every other one, on random costs."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from tvm_neuron.codegen.pipeline.balance import balance


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("seed", range(10))
def test_no_cut_is_better(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 7))
    cost = rng.uniform(1, 4, (count + 1, count + 1))
    cost[np.tril_indices(count + 1)] = np.inf
    places = sorted(rng.choice(np.arange(1, count), int(rng.integers(1, count)), replace=False).tolist())
    for cores in range(1, len(places) + 2):
        cuts, replicas = balance(cost, places, cores, most)
        assert sum(replicas) == cores
        assert max(replicas) <= most
        assert len(cuts) == len(replicas) - 1
        assert set(cuts) <= set(places)
        every = [
            slowest(cost, other, counts, count)
            for stages in range(min(2, cores), cores + 1)
            for other in combinations(places, stages - 1)
            for counts in product(range(1, most + 1), repeat=stages)
            if sum(counts) == cores
        ]
        assert slowest(cost, cuts, replicas, count) == min(every)


def slowest(cost: np.ndarray, cuts: tuple[int, ...], replicas: tuple[int, ...], count: int) -> float:
    bounds = pairwise((0, *cuts, count))
    return max(float(cost[bound]) / cores for bound, cores in zip(bounds, replicas, strict=True))
