"""Vision: boxes and regions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.relay.op.declare import R, Tensor, fields, operator
from tvm_neuron.relay.op.elementwise import number


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


@operator("vision.get_valid_counts", outputs=3, shapeless=("score_threshold",))
def get_valid_counts(data: Tensor, score_threshold: float, id_index: int = 0, score_index: int = 1) -> Any:
    """How many boxes have a better score, and a class from 0 on; these first, -1 after them; their places."""
    return fields(R.vision.get_valid_counts(data, score_threshold, id_index, score_index), 3)


@operator(
    "vision.non_max_suppression", outputs=lambda attrs: 2 if attrs["return_indices"] else None,
    shapeless=("max_output_size", "iou_threshold"),
)  # fmt: skip
def non_max_suppression(
    data: Tensor, valid_count: Tensor, indices: Tensor, max_output_size: int = -1, iou_threshold: float = 0.5,
    force_suppress: bool = False, top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0,
    return_indices: bool = True, invalid_to_bottom: bool = False,
) -> Any:  # fmt: skip
    """The boxes that overlap no better one of their class, best first: their places and number, or the boxes."""
    chosen = [max_output_size, iou_threshold, force_suppress, top_k, coord_start, score_index, id_index]
    if return_indices:
        return fields(R.vision.non_max_suppression(data, valid_count, indices, *chosen, True, invalid_to_bottom), 2)
    shape = [data.ty.shape[0], data.ty.shape[1]]
    unread = R.zeros(shape, "int32")  # scripts give any tensor where places are not asked for
    return R.vision.non_max_suppression(data, valid_count, unread, *chosen, False, invalid_to_bottom)


@operator("vision.multibox_transform_loc", outputs=2)
def multibox_transform_loc(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, clip: bool = True, threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2), keep_background: bool = False,
) -> Any:  # fmt: skip
    """Boxes [class, score, left, top, right, bottom] of the anchors whose best class has the least score; how many.

    Class 0, the background, is not counted unless it is kept. Rows after the last box are -1.
    """
    count = anchor.ty.shape[1]
    classes = cls_prob if keep_background else R.strided_slice(cls_prob, [1], [1], [cls_prob.ty.shape[1]])
    score = R.max(classes, [1], True)
    best = R.astype(R.argmax(classes, 1, True), str(score.ty.dtype))
    numbers = R.where(R.less(score, number(threshold, score)), number(-1, score), best)
    moves = R.reshape(loc_pred, [-1, count, 4])
    scaled = R.multiply(moves, relax.const(list(variances), str(moves.ty.dtype)))
    shift, growth = (R.strided_slice(scaled, [2], [at], [at + 2]) for at in (0, 2))
    near, far = (R.strided_slice(anchor, [2], [at], [at + 2]) for at in (0, 2))
    size, half = R.subtract(far, near), number(0.5, anchor)
    middle = R.add(R.multiply(shift, size), R.multiply(R.add(near, far), half))
    reach = R.multiply(R.multiply(R.exp(growth), size), half)
    boxes = R.concat([R.subtract(middle, reach), R.add(middle, reach)], 2)
    if clip:
        boxes = R.minimum(R.maximum(boxes, number(0, boxes)), number(1, boxes))
    rows = R.concat([R.permute_dims(R.concat([numbers, score], 1), [0, 2, 1]), boxes], 2)
    found, kept, _ = fields(R.vision.get_valid_counts(rows, np.finfo("float32").min, 0, 1), 3)
    return [kept, found]
