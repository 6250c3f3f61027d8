"""Numbers evenly spaced, and powers of them; the exporter forgets the dimension of a single one, and negative bases."""

from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _linspace(
    start: Tensor | float, end: Tensor | float, steps: int, *, dtype: torch.dtype | None = None, **_others: Any
) -> Tensor:
    """From both ends to the middle, as torch does it, so that both are exact."""
    kind = dtype or torch.get_default_dtype()
    exact = kind if kind.is_floating_point else torch.float32
    low, high = (_tensor(bound, kind).to(exact) for bound in (start, end))
    places = torch.arange(steps, dtype=exact)
    step = (high - low) / max(steps - 1, 1)
    found = torch.where(places < steps // 2, low + step * places, high - step * (steps - 1 - places))
    return (low.expand(steps) if steps == 1 else found).to(kind)


def _tensor(bound: Tensor | float, kind: torch.dtype) -> Tensor:
    return bound.to(kind) if isinstance(bound, Tensor) else torch.full((), bound, dtype=kind)


def _logspace(
    start: Tensor | float,
    end: Tensor | float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: torch.dtype | None = None,
    **_others: Any,
) -> Tensor:
    kind = dtype or torch.get_default_dtype()
    exact = kind if kind.is_floating_point else torch.float32
    return torch.pow(base, _linspace(start, end, steps, dtype=exact)).to(kind)


TABLE = {
    _aten.linspace.Tensor_Scalar: _linspace,
    _aten.linspace.Scalar_Tensor: _linspace,
    _aten.linspace.Tensor_Tensor: _linspace,
    _aten.logspace.default: _logspace,
    _aten.logspace.Tensor_Scalar: _logspace,
    _aten.logspace.Scalar_Tensor: _logspace,
    _aten.logspace.Tensor_Tensor: _logspace,
}
