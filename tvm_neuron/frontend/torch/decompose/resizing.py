"""Resizing by a factor that gives no whole number of elements: ONNX's coordinates are other ones than torch's there."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _scaled(x: Tensor, factors: Sequence[float]) -> list[int]:
    return [math.floor(length * factor) for length, factor in zip(x.shape[2:], factors, strict=True)]


def _is_whole(x: Tensor, factors: Sequence[float] | None) -> bool:
    sizes = zip(x.shape[2:], factors or (), strict=factors is not None)
    return all(float(length * factor).is_integer() for length, factor in sizes)


def _nearest(x: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None) -> Any:
    """torch divides places by the factor that it was given, not by the ratio of the sizes."""
    del output_size  # there is one of the two
    if scale_factors is None or _is_whole(x, scale_factors):
        return NotImplemented
    for axis, (size, factor) in enumerate(zip(_scaled(x, scale_factors), scale_factors, strict=True), 2):
        places = torch.floor(torch.arange(size, dtype=torch.float32, device=x.device) * (1 / factor)).to(torch.int64)
        x = torch.index_select(x, axis, torch.clamp(places, max=x.shape[axis] - 1))
    return x


def _by_corners(overload: Any) -> Callable[..., Any]:
    """Corners lie on corners: the factor only says how many elements there are."""

    def resize(
        x: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
    ) -> Any:
        if scale_factors is None or not align_corners or _is_whole(x, scale_factors):
            return NotImplemented
        return overload(x, _scaled(x, scale_factors), align_corners, None)

    return resize


_CORNERED = (
    _aten.upsample_linear1d.vec,
    _aten.upsample_bilinear2d.vec,
    _aten.upsample_bicubic2d.vec,
    _aten.upsample_trilinear3d.vec,
)
TABLE = {
    _aten.upsample_nearest1d.vec: _nearest,
    _aten.upsample_nearest2d.vec: _nearest,
    _aten.upsample_nearest3d.vec: _nearest,
    **{overload: _by_corners(overload) for overload in _CORNERED},
}
