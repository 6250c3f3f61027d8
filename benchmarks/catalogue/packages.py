"""Imports torchvision, timm and diffusers beside a torch without CUDA.

torchvision has no wheel for CPUs on package indexes, and the library in the usual one doesn't load without CUDA. So the
operators that its networks call are defined before it is imported, by which timm and diffusers import as well.
"""

import inspect
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,"
    " int sampling_ratio, bool aligned) -> Tensor",
}


@cache
def torchvision() -> ModuleType:
    """The package, whether or not its library loads."""
    import torch

    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            operators.define(name + schema)
    import torchvision
    import torchvision.extension

    if not torchvision.extension._has_ops():
        for name, (run, fake) in {"nms": (_nms, _fake_nms), "roi_align": (_roi_align, _fake_roi_align)}.items():
            operators.impl(name, run, "CPU")
            torch.library.register_fake(f"torchvision::{name}", fake, lib=operators)
        for module in (torchvision.extension, import_module("torchvision.ops.roi_align")):
            module._has_ops = _has_ops
    torchvision.kept = operators  # they last as long as this does
    return torchvision


@cache
def timm() -> ModuleType:
    """The package."""
    torchvision()
    import timm

    return timm


def _has_ops() -> bool:  # whose text TorchScript reads
    return True


def _nms(boxes: "torch.Tensor", scores: "torch.Tensor", threshold: float) -> "torch.Tensor":
    """Indices of the boxes that no better kept box overlaps by more than `threshold`, the best first."""
    import torch
    from torchvision.ops import box_iou

    kept: list[int] = []
    is_gone = torch.zeros(len(boxes), dtype=torch.bool)
    for at in scores.argsort(descending=True).tolist():
        if not is_gone[at]:
            kept.append(at)
            is_gone |= box_iou(boxes[at : at + 1], boxes)[0] > threshold
    return torch.tensor(kept, dtype=torch.int64)


def _fake_nms(boxes: "torch.Tensor", scores: "torch.Tensor", threshold: float) -> "torch.Tensor":
    import torch

    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _roi_align(features: "torch.Tensor", boxes: "torch.Tensor", *settings: Any) -> "torch.Tensor":
    """As torchvision computes it where its library has nothing for a device."""
    from torchvision.ops.roi_align import _roi_align as in_python

    aligned: torch.Tensor = inspect.unwrap(in_python)(features, boxes, *settings)
    return aligned


def _fake_roi_align(
    features: "torch.Tensor", boxes: "torch.Tensor", scale: float, height: int, width: int, ratio: int, aligned: bool
) -> "torch.Tensor":
    return features.new_zeros((boxes.shape[0], features.shape[1], height, width))
