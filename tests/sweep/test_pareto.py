"""The best points: the least by any weights is one of them, and every other is beaten by one of them."""

import numpy as np
import pytest

pytestmark = pytest.mark.sweep


@pytest.mark.parametrize("seed", range(5))
def test_the_least_by_any_weights_is_best_and_the_rest_is_beaten(seed: int) -> None:
    import pandas as pd

    from tvm_neuron.sweep.pareto import GOALS, best, is_best

    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.integers(1, 9, (60, len(GOALS))), columns=GOALS)
    found = is_best(rows)
    assert 0 < found.sum() < len(rows)
    for weights in rng.uniform(0.1, 1, (50, len(GOALS))):
        assert found[np.argmin(rows.to_numpy() @ weights)]
    for _, row in rows[~found].iterrows():
        assert ((rows[found] <= row).all(axis=1) & (rows[found] < row).any(axis=1)).any()
    rows["model"], rows["outcome"] = "m", ["refused", *["compiled"] * 59]
    ((model, kept),) = best(rows)
    assert (model, "refused" in set(kept["outcome"])) == ("m", False)
    assert list(best(rows[GOALS[1:]])) == []  # nothing was compiled
