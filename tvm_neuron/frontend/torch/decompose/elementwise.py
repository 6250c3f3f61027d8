"""Functions of single elements."""

import math
from typing import Any

import torch
from torch import Tensor

from tvm_neuron.frontend.inverse_error import CENTRE, EDGE, SHIFT, TAIL, TAIL_SHIFT

_aten = torch.ops.aten
_LANCZOS_G = 7.0
_LANCZOS = (  # of the sum of poles by which gamma is approximated for this g, good to 1e-15
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
_DIGAMMA_FROM, _DIGAMMA = 6, (1 / 12, -1 / 120, 1 / 252, -1 / 240)  # the series of 1/x^2 is good to 1e-7 from there
# Abramowitz and Stegun, 9.8.1 and 9.8.2: I0 for |x| below 3.75 in (x/3.75)^2, and sqrt(x) exp(-x) I0 above in 3.75/x
_I0_EDGE = 3.75
_I0_SMALL = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
_I0_LARGE = (
    0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592, 0.39894228,
)  # fmt: skip


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """By Horner's rule; the highest power comes first."""
    total = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _lgamma(x: Tensor) -> Tensor:
    is_left = x < 0.5
    right = torch.where(is_left, 1 - x, x) - 1
    poles = torch.full_like(right, _LANCZOS[0])
    for number, coefficient in enumerate(_LANCZOS[1:], 1):
        poles = poles + coefficient / (right + number)
    edge = right + _LANCZOS_G + 0.5
    found = 0.5 * math.log(2 * math.pi) + (right + 0.5) * torch.log(edge) - edge + torch.log(poles)
    reflected = math.log(math.pi) - torch.log(torch.abs(torch.sin(math.pi * _fraction(x)))) - found
    return torch.where(is_left, reflected, found)


def _digamma(x: Tensor) -> Tensor:
    is_left = x < 0.5
    shifted = torch.where(is_left, 1 - x, x)
    below = torch.zeros_like(x)
    for _ in range(_DIGAMMA_FROM):
        below = below + 1 / shifted
        shifted = shifted + 1
    square = 1 / (shifted * shifted)
    series = square * _polynomial(square, _DIGAMMA[::-1])
    found = torch.log(shifted) - 0.5 / shifted - series - below
    part = math.pi * _fraction(x)
    return torch.where(is_left, found - math.pi * torch.cos(part) / torch.sin(part), found)


def _fraction(x: Tensor) -> Tensor:
    """What is after the point: sines of pi times it stay exact far from zero, but for their sign."""
    return x - torch.floor(x)


def _i0(x: Tensor) -> Tensor:
    size = torch.abs(x)
    small, large = torch.clamp(size, max=_I0_EDGE) / _I0_EDGE, _I0_EDGE / torch.clamp(size, min=_I0_EDGE)
    above = torch.exp(size) * torch.rsqrt(torch.clamp(size, min=_I0_EDGE)) * _polynomial(large, _I0_LARGE)
    return torch.where(size < _I0_EDGE, _polynomial(small * small, _I0_SMALL), above)


def _erfinv(x: Tensor) -> Tensor:
    w = -torch.log((1 - x) * (1 + x))
    middle = _polynomial(torch.clamp(w, max=EDGE) - SHIFT, CENTRE)
    tail = _polynomial(torch.sqrt(torch.clamp(w, min=EDGE)) - TAIL_SHIFT, TAIL)
    return torch.where(torch.abs(x) == 1, x * math.inf, x * torch.where(w < EDGE, middle, tail))


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """By the larger of the two, so that squares do not overflow."""
    x, y = torch.broadcast_tensors(torch.abs(x), torch.abs(y))
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    ratio = small / torch.where(large == 0, 1.0, large)
    return large * torch.sqrt(1 + ratio * ratio)


def _signbit(x: Tensor) -> Tensor:
    if not x.dtype.is_floating_point:
        return x < 0
    return torch.where(x == 0, 1 / x < 0, x < 0)  # of two zeros, too


def _copysign(x: Tensor, sign: Tensor) -> Tensor:
    return torch.where(_signbit(sign), -torch.abs(x), torch.abs(x))


def _fmax(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))


def _fmin(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))


def _rrelu(
    x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    del training, generator  # models are compiled as they are when they do not learn
    return torch.where(x < 0, x * ((lower + upper) / 2), x)


TABLE = {
    _aten.lgamma.default: _lgamma,
    _aten.special_gammaln.default: _lgamma,
    _aten.digamma.default: _digamma,
    _aten.special_digamma.default: _digamma,
    _aten.i0.default: _i0,
    _aten.special_i0.default: _i0,
    _aten.erfinv.default: _erfinv,
    _aten.special_erfinv.default: _erfinv,
    _aten.hypot.default: _hypot,
    _aten.signbit.default: _signbit,
    _aten.copysign.Tensor: _copysign,
    _aten.fmax.default: _fmax,
    _aten.fmin.default: _fmin,
    _aten.rrelu.default: _rrelu,
}
