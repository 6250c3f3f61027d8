"""Tensor: a tensor of the subgraph, known at compile time or not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class Tensor:
    """A tensor of the subgraph. `value` is set where it is known at compile time; dtype is the model's."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str = "temp"  # "input", "output" or "temp"
    value: NDArray[Any] | None = None
    is_spread: bool = False  # the same for every channel, so that in SBUF one chunk of partitions does for all

    @property
    def elems(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __repr__(self) -> str:
        return f"{self.name}{list(self.shape)}{'c' if self.value is not None else ''}"
