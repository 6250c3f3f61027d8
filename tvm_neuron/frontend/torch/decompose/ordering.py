"""What asks for the order of elements, and distances."""

from typing import Any

import torch
from torch import Tensor

from tvm_neuron.frontend.torch.decompose.numbers import of_numbers_too

_aten = torch.ops.aten


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = (torch.narrow(each, dim, k - 1, 1) for each in torch.sort(x, dim))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)  # the lower of two


def _median_of_all(x: Tensor) -> Tensor:
    return _median(x.flatten(), 0)[0]


def _top_k(x: Tensor, *_args: Any) -> Any:
    """Of one number alone, in which ONNX has no dimension to look along."""
    return NotImplemented if x.dim() else (x.clone(), torch.zeros_like(x, dtype=torch.int64))


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least of those that come most often, and the last place where it lies."""
    moved = x.movedim(dim, -1)
    values, _ = torch.sort(moved, -1)
    counts = (values.unsqueeze(-1) == values.unsqueeze(-2)).to(torch.int32).sum(-1)
    found = torch.gather(values, -1, torch.argmax(counts, -1, keepdim=True))
    places = torch.arange(moved.shape[-1], device=x.device)
    last = torch.where(moved == found, places, -1).amax(-1, keepdim=True)
    found, last = found.movedim(-1, dim), last.movedim(-1, dim)
    return (found, last) if keepdim else (found.squeeze(dim), last.squeeze(dim))


def _searchsorted(
    edges: Tensor, values: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """How many edges lie below each value."""
    if sorter is not None:
        edges = torch.gather(edges, -1, sorter)
    rows = edges.unsqueeze(-2) if edges.dim() > 1 else edges
    each = values.unsqueeze(-1)
    is_below = rows <= each if right or side == "right" else rows < each
    return is_below.to(torch.int32).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _bucketize(values: Tensor, edges: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return _searchsorted(edges, values, out_int32=out_int32, right=right)


def _cdist(x: Tensor, y: Tensor, p: float = 2, compute_mode: int | None = None) -> Tensor:
    del compute_mode  # which trades exactness for time
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, dim=-1)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Elements under the mask are those of the source, in order."""
    mask, x = torch.broadcast_tensors(mask, x)
    places = torch.cumsum(mask.flatten().to(torch.int64), 0) - 1
    taken = source.flatten()[torch.clamp(places, 0, source.numel() - 1)]
    return torch.where(mask, taken.reshape(x.shape), x)


TABLE = {
    _aten.topk.default: _top_k,
    _aten.kthvalue.default: of_numbers_too(_kthvalue),
    _aten.median.dim: of_numbers_too(_median),
    _aten.median.default: _median_of_all,
    _aten.mode.default: of_numbers_too(_mode),
    _aten.searchsorted.Tensor: _searchsorted,
    _aten.bucketize.Tensor: _bucketize,
    _aten.cdist.default: _cdist,
    _aten.masked_scatter.default: _masked_scatter,
}
