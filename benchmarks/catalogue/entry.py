"""Entry: a network of the catalogue by its name; the random numbers that it is fed with."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Arrays = Mapping[str, NDArray]
Network = tuple["torch.nn.Module", Arrays]
"""A module, and the inputs for it by the names of its parameters."""

_Choice = TypeVar("_Choice")


@dataclass(frozen=True)
class Entry:
    """`source` is the package that it is from, `family` what it stands for there."""

    source: str
    family: str
    model: str

    @property
    def name(self) -> str:
        """What selects it; also the name of its folder."""
        return f"{self.source}-{self.model}"


def only_input(module: "torch.nn.Module", array: NDArray) -> Network:
    """A module with one input."""
    return module, {next(iter(inspect.signature(module.forward).parameters)): array}


def generator(name: str) -> np.random.Generator:
    """Random numbers that depend on nothing but this name."""
    return np.random.default_rng([*name.encode()])


def image(name: str, *shape: int) -> NDArray[np.float32]:
    """Normal numbers."""
    return generator(name).standard_normal(shape).astype(np.float32)


def words(name: str, below: int, *shape: int) -> NDArray[np.int64]:
    """Tokens that are no special ones, whose numbers are the lowest."""
    return generator(name).integers(below // 10, below, shape)


def first_that_runs(make: Callable[[_Choice], Network], choices: Iterable[_Choice]) -> Network:
    """What `make` gives of the first choice with which it runs.

    Raises what the last one fails with.
    """
    import torch

    failed: Exception | None = None
    for choice in choices:
        try:
            torch.manual_seed(0)
            module, inputs = make(choice)
            with torch.no_grad():
                module.eval()(**{name: torch.from_numpy(array) for name, array in inputs.items()})
        except Exception as error:
            failed = error
            continue
        return module, inputs
    raise failed or ValueError("there is nothing to choose from")
