"""Adaptive pooling: element i of n takes what lies from i L/n, rounded down, to (i+1) L/n, rounded up."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_aten = torch.ops.aten


def _windows(length: int, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the windows begin, and where they end."""
    number = torch.arange(size, device=device)
    return number * length // size, ((number + 1) * length + size - 1) // size


def _adaptive_max(x: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The greatest of each window, and where in the image the first such lies."""
    image, rank = x.shape[-len(sizes) :], len(sizes)
    places = torch.zeros([1] * (2 * rank), dtype=torch.int64, device=x.device)  # outputs, then their windows
    for axis, (length, size) in enumerate(zip(image, sizes, strict=True)):
        begin, end = _windows(length, size, x.device)
        longest = max(-((i + 1) * length // -size) - i * length // size for i in range(size))
        inside = torch.arange(longest, device=x.device)
        at = torch.minimum(begin.unsqueeze(1) + inside, end.unsqueeze(1) - 1)  # shorter ones have their last repeated
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = size, longest
        places = places * length + at.reshape(shape)
    outputs = math.prod(sizes)
    table = places.reshape(outputs, -1)
    taken = x.flatten(-rank)[..., table.flatten()].unflatten(-1, (outputs, -1))
    values, chosen = torch.max(taken, -1, keepdim=True)
    found = torch.gather(table.expand(taken.shape), -1, chosen)
    shape = [*x.shape[:-rank], *sizes]
    return values.reshape(shape), found.reshape(shape)


def _adaptive_mean(x: Tensor, sizes: Sequence[int]) -> Tensor:
    """A product for each axis with the shares that elements have in the windows."""
    for axis, size in zip(range(-len(sizes), 0), sizes, strict=True):
        begin, end = _windows(x.shape[axis], size, x.device)
        place = torch.arange(x.shape[axis], device=x.device).unsqueeze(1)
        is_inside = (place >= begin) & (place < end)
        x = (x.movedim(axis, -1) @ (is_inside.to(x.dtype) / (end - begin))).movedim(-1, axis)
    return x


TABLE = {
    _aten.adaptive_max_pool1d.default: _adaptive_max,
    _aten.adaptive_max_pool2d.default: _adaptive_max,
    _aten.adaptive_max_pool3d.default: _adaptive_max,
    _aten.adaptive_avg_pool3d.default: _adaptive_mean,
}
