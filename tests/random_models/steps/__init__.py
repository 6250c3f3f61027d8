"""What a random model grows by: steps, each of one operator or of a few that go together, by family."""

from collections.abc import Callable

from tests.random_models.growth import Growth
from tests.random_models.steps import (
    arithmetic,
    attention,
    casts,
    chains,
    linear,
    movement,
    norms,
    positions,
    quantised,
    reductions,
    windows,
)  # fmt: skip

Step = Callable[[Growth], object]
FAMILIES: tuple[tuple[int, tuple[Step, ...]], ...] = (
    (22, arithmetic.STEPS),
    (7, casts.STEPS),
    (8, reductions.STEPS),
    (20, movement.STEPS),
    (8, positions.STEPS),
    (16, linear.STEPS),
    (7, windows.STEPS),
    (7, norms.STEPS),
    (5, attention.STEPS),
    (6, quantised.STEPS),
    (6, chains.STEPS),
)
"""How often a step comes from a family."""
