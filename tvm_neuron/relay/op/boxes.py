"""Vision: boxes and regions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.relay.op.declare import R, Tensor, fields, operator


@operator("vision.roi_align")
def roi_align(
    data: Tensor, rois: Tensor, pooled_size: Sequence[int], spatial_scale: float, sample_ratio: int = -1,
    layout: str = "NCHW", mode: str = "avg",
) -> Tensor:  # fmt: skip
    """Regions in one size, each part the mean or maximum of interpolated points."""
    sizes = (pooled_size, pooled_size) if isinstance(pooled_size, int) else tuple(pooled_size)
    return R.vision.roi_align(data, rois, sizes, spatial_scale, sample_ratio, False, layout, mode)


@operator("vision.roi_pool")
def roi_pool(
    data: Tensor, rois: Tensor, pooled_size: Sequence[int], spatial_scale: float, layout: str = "NCHW"
) -> Tensor:
    """Regions in one size, each part the maximum of its elements."""
    sizes = (pooled_size, pooled_size) if isinstance(pooled_size, int) else tuple(pooled_size)
    return R.vision.roi_pool(data, rois, sizes, spatial_scale, layout)


@operator("vision.multibox_prior")
def multibox_prior(
    data: Tensor, sizes: Sequence[float] = (1.0,), ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (-1.0, -1.0), offsets: Sequence[float] = (0.5, 0.5), clip: bool = False,
) -> Tensor:  # fmt: skip
    """The anchor boxes of every position of a feature map; a constant."""
    rows, columns = (int(dim) for dim in list(data.ty.shape)[2:])
    step_y, step_x = (given if given > 0 else 1 / count for given, count in zip(steps, (rows, columns), strict=True))
    y, x = (np.arange(rows) + offsets[0]) * step_y, (np.arange(columns) + offsets[1]) * step_x
    shapes = [(size * rows / columns / 2, size / 2) for size in sizes]
    shapes += [(sizes[0] * rows / columns * ratio**0.5 / 2, sizes[0] / ratio**0.5 / 2) for ratio in ratios[1:]]
    boxes = np.zeros((rows, columns, len(shapes), 4), "float32")
    for index, (width, height) in enumerate(shapes):
        boxes[:, :, index, 0], boxes[:, :, index, 2] = x - width, x + width
        boxes[:, :, index, 1], boxes[:, :, index, 3] = (y - height)[:, None], (y + height)[:, None]
    listed = boxes.reshape(1, -1, 4)
    return relax.const(np.clip(listed, 0, 1) if clip else listed)


@operator("vision.all_class_non_max_suppression", outputs=2)
def all_class_non_max_suppression(
    boxes: Tensor, scores: Tensor, max_output_boxes_per_class: int = -1, iou_threshold: float = -1.0,
    score_threshold: float = -1.0, output_format: str = "onnx",
) -> Any:  # fmt: skip
    """The boxes of every class that overlap no better one; on the CPU."""
    limit, overlap, least = max_output_boxes_per_class, iou_threshold, score_threshold
    found = R.vision.all_class_non_max_suppression(
        boxes, scores, relax.const(limit, "int64"), relax.const(overlap), relax.const(least), output_format
    )
    return fields(found, 2)
