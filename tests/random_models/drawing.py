"""Drawing: what a random model's steps ask of chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.random_models.evaluate import UnfitError


@dataclass
class Drawing:
    """Numbers, choices and arrays from one generator."""

    rng: np.random.Generator
    main_float: str  # the dtype of most floats of the model

    def chance(self, probability: float) -> bool:
        """True that often."""
        return bool(self.rng.random() < probability)

    def draw(self, first: int, last: int) -> int:
        """A whole number, both ends included."""
        return int(self.rng.integers(first, last + 1))

    def one_of(self, choices: Sequence[Any]) -> Any:
        """One of the choices. Raises UnfitError: there are none."""
        if not len(choices):
            raise UnfitError("nothing to choose from")
        return choices[int(self.rng.integers(len(choices)))]

    def normal(self, shape: Sequence[int], scale: float = 1.0, dtype: str | None = None) -> NDArray:
        """Normal numbers."""
        return (self.rng.standard_normal(tuple(shape)) * scale).astype(dtype or self.main_float)

    def random(self, shape: Sequence[int], dtype: str) -> NDArray:
        """Numbers of any dtype as models have them."""
        if dtype == "bool":
            return self.rng.random(tuple(shape)) < self.one_of([0.5, 0.5, 0.1, 0.9])
        if dtype.startswith("float"):
            kind = self.draw(0, 5)
            if kind == 0:  # quarters: their sums and products are exact
                return (self.rng.integers(-16, 17, tuple(shape)) / 4).astype(dtype)
            if kind == 1:
                return self.rng.uniform(0.25, 2, tuple(shape)).astype(dtype)
            return self.normal(shape, self.one_of([1.0, 1.0, 0.3, 3.0]), dtype)
        info = np.iinfo(dtype)
        low, high = self.one_of([(-8, 8), (0, 9), (1, 5), (-100, 100), (0, 255)])
        if self.chance(0.05) and info.bits > 16:
            low, high = -(2**20), 2**20
        return self.rng.integers(max(low, info.min), min(high, info.max) + 1, tuple(shape)).astype(dtype)
