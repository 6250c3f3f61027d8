"""Attributes of an operator of MXNet, which are texts, as values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tvm_neuron.frontend.refused import RefusedError

Sizes = tuple[int, ...]

_NOTHING = ("None", "", "()")
_DTYPES = {name: np.dtype(name) for name in
           ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")}  # fmt: skip
_DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
_WITHOUT_MEANING = {"workspace", "cudnn_tune", "cudnn_off", "cudnn_algo_verbose", "num_args", "ctx", "name"}
"""Of a result: how MXNet is to compute it, or what the number of inputs says as well."""


class Attributes:
    """What an operator is told; those that no one asked for are known in the end, so that none is passed over."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._asked: set[str] = set()

    def text(self, name: str, default: str, among: Sequence[str] = ()) -> str:
        """A word, one of `among` where they are given."""
        found = self._value(name) or default
        if among and found not in among:
            raise RefusedError(f"{name} = {found}; known are {', '.join(among)}")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """True or False."""
        return self.text(name, str(default), ("True", "False", "1", "0", "true", "false")).lower() in ("true", "1")

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number, which must be there if there is no default."""
        return int(self._number(name, default, int))

    def number(self, name: str, default: float | None = None) -> float:
        """A number."""
        return float(self._number(name, default, float))

    def maybe(self, name: str) -> int | None:
        """A whole number, or None where nothing is said."""
        return None if self._value(name) is None else self.whole(name)

    def maybe_number(self, name: str) -> float | None:
        """A number, or None where nothing is said."""
        return None if self._value(name) is None else self.number(name)

    def sizes(self, name: str, default: Sequence[int] | None = None) -> Sizes:
        """Whole numbers; one alone is a tuple of one."""
        found = self.bounds(name)
        if not found and default is None:
            raise RefusedError(f"it has no {name}")
        if any(each is None for each in found):
            raise RefusedError(f"{name} = {self._values[name]} leaves a size open")
        return tuple(each for each in found or default or () if each is not None)

    def bounds(self, name: str) -> tuple[int | None, ...]:
        """Whole numbers or None; none at all where nothing is said."""
        text = self._value(name) or ""
        if re.search(r"[^-\d\s,()\[\]NoneL]", text):
            raise RefusedError(f"{name} = {text} are no whole numbers")
        return tuple(None if each == "None" else int(each) for each in re.findall(r"-?\d+|None", text))

    def numbers(self, name: str, default: Sequence[float]) -> tuple[float, ...]:
        """Numbers."""
        text = self._value(name)
        if text is None:
            return tuple(default)
        try:
            return tuple(float(each) for each in text.strip("()[] ").split(",") if each.strip())
        except ValueError as error:
            raise RefusedError(f"{name} = {text} are no numbers") from error

    def dtype(self, name: str, default: Any) -> np.dtype[Any]:
        """A dtype of NumPy."""
        found = self._value(name)
        if found is not None and found not in _DTYPES:
            raise RefusedError(f"{name} = {found}; known are {', '.join(_DTYPES)}")
        return np.dtype(default) if found is None else _DTYPES[found]

    def only(self, name: str, *values: str) -> None:
        """Refuses the operator if it is told anything else."""
        found = self._value(name)
        if found is not None and found not in values:
            raise RefusedError(f"{name} = {found}; it may be {' or '.join(values)}" if values else f"{name} = {found}")

    def passed_over(self) -> list[str]:
        """What no one asked for, of what changes results."""
        names = (name for name in self._values if not name.startswith("__") and name not in _WITHOUT_MEANING)
        return sorted(name for name in names if name not in self._asked)

    def skip(self, *names: str) -> None:
        """These matter in training alone."""
        self._asked.update(names)

    def _value(self, name: str) -> str | None:
        self._asked.add(name)
        found = self._values.get(name)
        return None if found in _NOTHING else found

    def _number(self, name: str, default: float | None, kind: type) -> Any:
        text = self._value(name)
        if text is None and default is None:
            raise RefusedError(f"it has no {name}")
        try:
            return default if text is None else kind(text)
        except ValueError as error:
            raise RefusedError(f"{name} = {text} is no number") from error
