"""Running products and extremes: in as many steps as the length has bits, each of twice the distance."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from tvm_neuron.frontend.torch.decompose.numbers import of_numbers_too

_aten = torch.ops.aten


def _earlier(x: Tensor, distance: int, start: float) -> Tensor:
    """Along the last dimension, the element so far before each; `start` where there is none."""
    return pad(x[..., :-distance], (distance, 0), value=start)


def _distances(length: int) -> list[int]:
    return [1 << bit for bit in range(max(length - 1, 0).bit_length())]


def _cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    kind = dtype or (x.dtype if x.dtype.is_floating_point else torch.int64)
    found = x.to(kind).movedim(dim, -1)
    for distance in _distances(found.shape[-1]):
        found = found * _earlier(found, distance, 1)
    return found.movedim(-1, dim)


def _running_extreme(x: Tensor, dim: int, sign: int) -> tuple[Tensor, Tensor]:
    """And where it lies, the last such place."""
    values = x.movedim(dim, -1)
    places = torch.arange(values.shape[-1], device=x.device).expand(values.shape)
    for distance in _distances(values.shape[-1]):
        before, at = _earlier(values, distance, 0), _earlier(places, distance, -1)
        is_before = (before > values if sign > 0 else before < values) & (at >= 0)
        values, places = torch.where(is_before, before, values), torch.where(is_before, at, places)
    return values.movedim(-1, dim), places.movedim(-1, dim)


def _cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running_extreme(x, dim, 1)


def _cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running_extreme(x, dim, -1)


TABLE = {
    _aten.cumprod.default: of_numbers_too(_cumprod),
    _aten.cummax.default: of_numbers_too(_cummax),
    _aten.cummin.default: of_numbers_too(_cummin),
}
