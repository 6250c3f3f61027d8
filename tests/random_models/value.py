"""Value: a tensor of a random model, with what rounding might make of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

AMPLIFIED = 12.0
"""By how much farther away from a value than rounding moves it others are tried, where that matters."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor. `samples` [SAMPLES, *shape] are what rounding might make of it; None: it is exact."""

    name: str
    exact: NDArray
    samples: NDArray | None
    is_constant: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return tuple(map(int, self.exact.shape))

    @property
    def rank(self) -> int:
        """How many extents it has."""
        return self.exact.ndim

    @property
    def dtype(self) -> str:
        """NumPy's name of its dtype."""
        return str(self.exact.dtype)

    @property
    def is_float(self) -> bool:
        """Whether it holds floats."""
        return self.exact.dtype.kind == "f"

    def sample(self, number: int) -> NDArray:
        """One of the samples."""
        return self.exact if self.samples is None else self.samples[number]

    def amplified(self, number: int) -> NDArray:
        """The sample, several times as far from the value: what may jump is known to be far from the edge."""
        if self.samples is None or not self.is_float:
            return self.sample(number)
        wide = self.exact.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            moved = wide + AMPLIFIED * (self.samples[number] - wide)
        return np.where(np.isfinite(wide), moved, wide).astype(self.exact.dtype)
