"""Tensor: a tensor of the subgraph, known at compile time or not."""

from collections.abc import Iterable
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
    kind: str = "temp"  # "input", "output", "scratch" (in device memory) or "temp"
    value: NDArray[Any] | None = None
    is_spread: bool = False  # the same for every channel, so that in SBUF one chunk of partitions does for all
    span: tuple[float, float] | None = None  # of whole numbers the least and the greatest, where more than dtype tells

    @property
    def elems(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_stored(self) -> bool:
        """Whether what is written goes to device memory, where any element can be reached."""
        return self.kind in ("output", "scratch")

    def __repr__(self) -> str:
        return f"{self.name}{list(self.shape)}{'c' if self.value is not None else ''}"


def is_rounded(sources: Iterable[Tensor], tensor: Tensor, out: Tensor) -> bool:
    """Whether the model rounds what it makes of `sources` to a narrower float, `tensor`, to widen it again to `out`."""
    widest = max((_float_bits(source) for source in sources), default=0)
    return 0 < _float_bits(tensor) < min(widest, _float_bits(out))


def _float_bits(tensor: Tensor) -> int:
    """0 of a dtype that is no float; of `float8_e4m3fn` 8."""
    digits = tensor.dtype.partition("float")[2].partition("_")[0]
    return int(digits) if digits else 0
