"""Spans: between which numbers the whole numbers of a tensor lie, where more is known of them than their dtype."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

Span = tuple[float, float]
"""The least and the greatest number that may occur."""

Spans = tuple[Any, ...]
"""The span, or None, of each tensor that an expression holds; nested as tuples are. Empty if nothing is known."""

SpansOf = Callable[[relax.Expr], Spans]

_ATTR = "neuron.spans"
_LOOKED_AT_FIRST = 64  # elements: nearly all weights show here that they are no whole numbers


def span_of_array(array: NDArray[Any]) -> Span | None:
    """Of values that are all whole numbers, the powers of two around them; None of others.

    No closer, since spans come into bundles about defects, which must not tell a model's weights.
    """
    if not array.size or not _are_whole(array.reshape(-1)[:_LOOKED_AT_FIRST]) or not _are_whole(array):
        return None
    return -_power(-float(array.min())), _power(float(array.max()))


def with_spans(func: relax.Function, spans: Sequence[Span | None]) -> relax.Function:
    """The function of a subgraph with what is known of each of its parameters."""
    return func.with_attr(_ATTR, [list(span or ()) for span in spans]) if any(spans) else func


def spans_of_params(func: relax.Function) -> list[Span | None]:
    """What `with_spans` noted; of any other function nothing."""
    if not func.attrs or _ATTR not in func.attrs:
        return [None] * len(func.params)
    return [(float(span[0]), float(span[1])) if len(span) else None for span in func.attrs[_ATTR]]


def _power(number: float) -> float:
    """The least power of two that is no less, or 0."""
    return 2.0 ** (int(number) - 1).bit_length() if number > 0 else 0.0


def _are_whole(array: NDArray[Any]) -> bool:
    if array.dtype.kind in "iub":
        return True
    values = array.astype(np.float64)
    return bool(np.isfinite(values).all()) and np.array_equal(values, np.floor(values))
