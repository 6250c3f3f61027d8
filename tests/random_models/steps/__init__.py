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
    numbers,
    positions,
    quantised,
    reductions,
    windows,
)  # fmt: skip

Step = Callable[[Growth], object]
Families = tuple[tuple[int, tuple[Step, ...]], ...]
"""How often a step comes from a family."""

ALL: Families = (
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
NUMBERS: Families = (
    (25, numbers.STEPS),
    (15, arithmetic.STEPS),
    (5, casts.STEPS),
    (8, reductions.STEPS),
    (15, movement.STEPS),
    (3, positions.STEPS),
    (4, chains.STEPS),
)
"""Without sums of products, so that small differences of whole numbers come a long way."""
