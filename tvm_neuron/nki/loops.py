"""The loops of the language: Python runs every iteration, so all of them unroll."""

from collections.abc import Iterator
from typing import Any

from tvm_neuron.nki.trace import Turn, current, is_tracing


class LoopIndex(int):
    """The index of a loop, which knows the loop's first."""

    first: int

    def __new__(cls, value: int, first: int) -> "LoopIndex":
        """An index with the loop's first one."""
        made = super().__new__(cls, value)
        made.first = first
        return made


def static_range(*bounds: Any, **_: Any) -> Iterator[LoopIndex]:
    """As Python's `range`."""
    every = range(*(int(bound) for bound in bounds))
    return (LoopIndex(at, every.start) for at in every)


def sequential_range(*bounds: Any, **_: Any) -> Iterator[LoopIndex]:
    """As Python's `range`, of a body that some dialects evaluate once: tensors are placed in it as the first time."""
    begin = current().placements if is_tracing() else 0
    for at in static_range(*bounds):
        if is_tracing():
            current().placements = begin
        yield at


def affine_range(*bounds: Any, **_: Any) -> Iterator[LoopIndex]:
    """The same, of iterations that don't depend on each other: no two of them store to one place."""
    turn = Turn()
    if is_tracing():
        current().settle()  # what was held back before is no iteration's
        current().turns.append(turn)
    try:
        for at in sequential_range(*bounds):
            turn.at = at
            yield at
            if is_tracing():
                current().settle()  # what the iteration held back is its own
    finally:
        if is_tracing() and turn in current().turns:
            current().turns.remove(turn)
