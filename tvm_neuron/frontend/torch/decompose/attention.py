"""Attention of other ranks than four: torch takes any batch, its exporter one of four dimensions alone."""

from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, _dropout: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query keyT scale + mask) value over the last two dimensions; 0 where a mask leaves nothing."""
    if query.dim() == key.dim() == value.dim() == 4:
        return NotImplemented
    if enable_gqa:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if mask is None:
        return torch.softmax(scores, -1) @ value
    scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    is_empty = scores.amax(-1, keepdim=True) == -torch.inf  # a NaN of the data's own stays
    return torch.softmax(scores, -1).masked_fill(is_empty, 0) @ value


def _is_written(node: torch.fx.Node) -> bool:
    return all(isinstance(each, torch.fx.Node) and each.meta["val"].dim() == 4 for each in node.args[:3])


TABLE = {_aten.scaled_dot_product_attention.default: _attention}
WRITTEN = {_aten.scaled_dot_product_attention.default: _is_written}
