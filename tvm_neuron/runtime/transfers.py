"""Counts what moves between the host's memory and NeuronCores while a library runs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass
class Moved:
    """Tensors and bytes, as they are in device memory, in `calls` of programs; the same as a report's `transfers`.

    `model_seconds` is how long this machine was at work for the hardware model, which is no time of the device's.
    """

    calls: int = 0
    tensors_to_core: int = 0
    bytes_to_core: int = 0
    tensors_from_core: int = 0
    bytes_from_core: int = 0
    model_seconds: float = field(default=0.0, compare=False)


_counted: ContextVar[Moved | None] = ContextVar("tvm_neuron_moved", default=None)


@contextmanager
def counting() -> Iterator[Moved]:
    """What programs move that this thread calls inside the `with` block."""
    moved = Moved()
    token = _counted.set(moved)
    try:
        yield moved
    finally:
        _counted.reset(token)


def count_call(inputs: Iterable[NDArray[Any]], outputs: Iterable[NDArray[Any]], seconds: float) -> None:
    """One call of a program, which took the model so long; the arrays as the device gets and gives them."""
    moved = _counted.get()
    if moved is None:
        return
    to_core, from_core = [array.nbytes for array in inputs], [array.nbytes for array in outputs]
    moved.calls += 1
    moved.model_seconds += seconds
    moved.tensors_to_core += len(to_core)
    moved.bytes_to_core += sum(to_core)
    moved.tensors_from_core += len(from_core)
    moved.bytes_from_core += sum(from_core)
