"""Random models of all operators on both chips: nothing wrong, no defect of the compiler."""

import pytest

from tests.random_models.judge import judge
from tests.random_models.model import random_model


@pytest.mark.parametrize("seed", range(12))
def test_few(seed: int) -> None:
    outcome = judge(random_model(seed), f"inf{1 + seed % 2}")
    assert outcome.result == "passed", outcome.reason


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1024))
def test_more(seed: int) -> None:
    outcome = judge(random_model(seed), f"inf{1 + seed % 2}")
    assert outcome.result == "passed", outcome.reason
