"""Constants in many dtypes and with odd values, and the choices of which nodes are made of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FLOATS = ("float32", "float16", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
OPSETS = (11, 13, 17, 18, 21)
OF_SMALL = ("Shrink", "Asinh", "Acosh", "Sin", "Cos", "Tan", "Softmax", "LogSoftmax", "CumSum")
"""Of large numbers onnxruntime's own loses digits, or ours squares or turns them, or multiplies them by 0 and 1."""


class Drawing:
    """Constants so far, and what makers of nodes draw for others: `given` are those drawn for the node at hand."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice(OPSETS))
        self.values: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.given: dict[str, Array] = {}
        for _ in range(int(self.rng.integers(1, 4))):
            self._new(self._array())
        self.settle()

    def settle(self) -> None:
        """Keeps the constants drawn for a node."""
        self.values |= self.given
        self.constants |= self.given
        self.given = {}

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.rng.integers(len(options))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, most: int = 4) -> tuple[int, ...]:
        if self.chance(0.06):
            return tuple(int(n) for n in self.rng.choice([0, 1, 3], self.rng.integers(1, 4)))
        return tuple(int(n) for n in self.rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 33], self.rng.integers(0, most + 1)))

    def _array(self) -> Array:
        while True:
            shape = self.shape()
            if np.prod(shape, dtype=int) <= 1500:
                return self.filled(shape, self.dtype())

    def dtype(self) -> str:
        return str(self.rng.choice(["float32"] * 5 + [*FLOATS, *INTEGERS, "bool", "int32", "int64", "uint8"]))

    def filled(self, shape: Sequence[int], dtype: str) -> Array:
        """Random values of the dtype, with infinities, NaN, zeros of both signs and limits among them."""
        shape = tuple(shape)
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype in INTEGERS:
            limits = np.iinfo(dtype)
            small = self.rng.integers(max(limits.min, -9), 10, shape).astype(dtype)
            odd = self.rng.choice(np.array([limits.min, limits.max, limits.max // 3, 0], dtype), shape)
            return np.where(self.rng.random(shape) < (0.1 if self.chance(0.4) else 0), odd, small).astype(dtype)
        values = self.rng.standard_normal(shape) * self.choice([1, 1, 1, 5, 60])
        if self.chance(0.25):
            values = np.round(values * 2) / 2
        odd = self.rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e-30], shape)
        with np.errstate(over="ignore"):
            return np.where(self.rng.random(shape) < (0.15 if self.chance(0.3) else 0), odd, values).astype(dtype)

    def pick(self, *kinds: str, rank: int | None = None) -> str | None:
        """The name of a value of one of the dtypes, the newest ones first of all; None if there is none."""
        found = [
            name
            for name, value in self.values.items()
            if (not kinds or value.dtype.name in kinds) and (rank is None or value.ndim >= rank)
        ]
        if not found:
            return None
        return str(found[-1] if self.chance(0.5) else self.choice(found))

    def value(self, name: str) -> Array:
        return self.values[name] if name in self.values else self.given[name]

    def new(self, value: Array) -> str:
        return self._new(np.asarray(value))

    def _new(self, value: Array) -> str:
        name = f"c{len(self.constants) + len(self.given)}"
        self.given[name] = value
        return name

    def like(self, name: str) -> str:
        """Another operand that broadcasts against a value: one of the pool, or new."""
        value = self.value(name)
        others = [
            other
            for other, found in self.values.items()
            if found.dtype == value.dtype and broadcasts(found.shape, value.shape)
        ]
        if others and self.chance(0.5):
            return str(self.choice(others))
        shape = [1 if self.chance(0.2) else n for n in value.shape][self.rng.integers(0, value.ndim + 1) :]
        return self._new(self.filled(shape, value.dtype.name))

    def has_nan(self, name: str) -> bool:
        return self.value(name).dtype.kind == "f" and bool(np.isnan(self.value(name)).any())

    def is_small(self, name: str) -> bool:
        """Whether no sum or product of some values leaves its dtype."""
        return bool(np.all(np.abs(self.value(name).astype(np.float64)) < 100))

    def ints(self, *values: int) -> str:
        return self._new(np.array(values, np.int64))

    def axis(self, name: str) -> int:
        rank = max(self.value(name).ndim, 1)
        return int(self.rng.integers(-rank, rank))


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True
