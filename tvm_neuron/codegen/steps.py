"""Step: one of what a compile does to a subgraph, by name, with why it stands where it stands; it can be left out.

That is for experiments alone: `python -m benchmarks.ablation` leaves out one step after the other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

_left_out: ContextVar[frozenset[str]] = ContextVar("tvm_neuron_steps_left_out", default=frozenset())


@dataclass(frozen=True)
class Alternative:
    """Something that may be done, and `why` where it is."""

    name: str
    why: str

    @property
    def is_taken(self) -> bool:
        """Whether it is to be done: always, but inside of `without`."""
        return self.name not in _left_out.get()


@dataclass(frozen=True)
class Step(Alternative, Generic[T]):
    """`run` changes what it is given; a step that `is_needed` makes results right or a model compile at all."""

    run: Callable[[T], None]
    is_needed: bool = False


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Subgraphs compiled inside the `with` block are so without these steps."""
    token = _left_out.set(_left_out.get().union(names))
    try:
        yield
    finally:
        _left_out.reset(token)
