"""Reductions: those scattered to places, whose means the exporter writes as if nothing was to be combined, and those
over all dimensions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    return NotImplemented if reduce != "mean" else _scattered_mean(x, dim, index, source, include_self)


def _scattered_mean(x: Tensor, dim: int, index: Tensor, source: Tensor, include_self: bool) -> Tensor:
    """Sums over how many there are of each; what nothing is scattered to stays."""
    counts = torch.zeros_like(x).scatter_add(dim, index, torch.ones_like(source))
    start = x if include_self else torch.where(counts > 0, torch.zeros_like(x), x)
    sums = start.scatter_add(dim, index, source)
    counts = counts + 1 if include_self else counts.clamp(min=1)
    return torch.div(sums, counts, rounding_mode=None if x.dtype.is_floating_point else "floor")


def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Whole slices to places, as their elements."""
    if not x.dim():
        args = 0, index.reshape(1), source.reshape(1), reduce
        return _index_reduce(x.reshape(1), *args, include_self=include_self).reshape(())
    sizes = [-1 if axis == dim % x.dim() else 1 for axis in range(x.dim())]
    places = index.reshape(sizes).expand(source.shape)
    if reduce == "mean":
        return _scattered_mean(x, dim, places, source, include_self)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def _over_all(overload: Any) -> Callable[..., Any]:
    """No dimension given means all, for which the exporter has no rule; one number alone is its own extreme."""

    def reduce(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if not x.dim():
            return x.clone()
        return NotImplemented if dim else overload(x, [*range(x.dim())], keepdim)

    return reduce


def _squeeze(x: Tensor, dim: int | Sequence[int]) -> Any:
    """Dimensions of other sizes than 1 stay, which the exporter would have ONNX remove."""
    asked = [dim] if isinstance(dim, int) else [*dim]
    single = [each for each in asked if not x.dim() or x.shape[each] == 1]
    if not single:
        return x.clone()
    return NotImplemented if len(single) == len(asked) else x.squeeze(single)


def _is_written(node: torch.fx.Node) -> bool:
    x, dim = node.args
    shape = x.meta["val"].shape
    return bool(shape) and dim != [] and all(shape[each] == 1 for each in ([dim] if isinstance(dim, int) else dim))


TABLE = {
    _aten.scatter_reduce.two: _scatter_reduce,
    _aten.index_reduce.default: _index_reduce,
    _aten.squeeze.dim: _squeeze,
    _aten.squeeze.dims: _squeeze,
    **{overload: _over_all(overload) for overload in (_aten.amax.default, _aten.amin.default)},
}
WRITTEN = {_aten.squeeze.dim: _is_written, _aten.squeeze.dims: _is_written}
