"""Sampling at positions that are computed: crops of images, and convolutions whose taps are moved."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.op.convolution import Sizes, listed, pads
from tvm_neuron.relay.op.declare import R, Tensor, Types, fields, operator
from tvm_neuron.relay.op.elementwise import number
from tvm_neuron.relay.op.layouts import relayout


@operator("image.crop_and_resize")
def crop_and_resize(
    data: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Sequence[int], layout: str, method: str = "bilinear",
    extrapolation_value: float = 0, out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A crop for each box (corners y, x, y, x as parts of the image), resized; the value outside is given."""
    if method not in ("bilinear", "nearest_neighbor"):
        raise ModelError(f"image.crop_and_resize: method is '{method}'; there are bilinear and nearest_neighbor")
    images = relayout(data, layout, "NHWC")
    rows, columns = (int(dim) for dim in list(images.ty.shape)[1:3])
    count = int(boxes.ty.shape[0])
    y = _coordinates(boxes, 0, crop_size[0], rows)  # [boxes, rows]
    x = _coordinates(boxes, 1, crop_size[1], columns)
    places = R.reshape(R.astype(box_indices, "int32"), [count, 1, 1])
    size = [count, crop_size[0], crop_size[1]]
    grid_y, grid_x = R.broadcast_to(R.expand_dims(y, 2), size), R.broadcast_to(R.expand_dims(x, 1), size)
    sampled = _sampled(images, R.broadcast_to(places, size), grid_y, grid_x, method == "nearest_neighbor")
    inside = R.logical_and(_within(grid_y, rows), _within(grid_x, columns))
    kept = R.where(R.expand_dims(inside, 3), sampled, number(extrapolation_value, sampled))
    result = relayout(kept, "NHWC", layout)
    return R.astype(result, out_dtype) if out_dtype else result


def _coordinates(boxes: Any, at: int, count: int, size: int) -> Any:
    """Where the samples of each box lie along one dimension, in elements."""
    begin, end = (R.strided_slice(boxes, [1], [each], [each + 1]) for each in (at, at + 2))
    if count == 1:
        return R.multiply(R.add(begin, end), number(0.5 * (size - 1), boxes))
    steps = relax.const(np.arange(count)[None] / (count - 1), str(boxes.ty.dtype))
    return R.multiply(R.add(begin, R.multiply(R.subtract(end, begin), steps)), number(size - 1, boxes))


def _within(position: Any, size: int) -> Any:
    return R.logical_and(
        R.greater_equal(position, number(0, position)), R.less_equal(position, number(size - 1, position))
    )


def _sampled(images: Any, image: Any, y: Any, x: Any, is_nearest: bool) -> Any:
    """The elements [..., channels] of images [N, H, W, C] at positions, interpolated or the nearest."""
    rows, columns = (int(dim) for dim in list(images.ty.shape)[1:3])

    def element(row: Any, column: Any) -> Any:
        inner = [_clamped(row, rows), _clamped(column, columns)]
        return R.gather_nd(images, R.stack([R.astype(image, "int64"), *inner], int(image.ty.ndim)), 0)

    if is_nearest:
        half = number(0.5, y)
        return element(R.floor(R.add(y, half)), R.floor(R.add(x, half)))
    top, left = R.floor(y), R.floor(x)
    one = number(1, y)
    down, right = (R.expand_dims(R.subtract(a, b), int(y.ty.ndim)) for a, b in ((y, top), (x, left)))
    upper = _mixed(element(top, left), element(top, R.add(left, one)), right)
    lower = _mixed(element(R.add(top, one), left), element(R.add(top, one), R.add(left, one)), right)
    return _mixed(upper, lower, down)


def _clamped(position: Any, size: int) -> Any:
    whole = R.minimum(R.maximum(position, number(0, position)), number(size - 1, position))
    return R.astype(whole, "int64")


def _mixed(one: Any, other: Any, part: Any) -> Any:
    return R.add(one, R.multiply(R.subtract(other, one), R.astype(part, str(one.ty.dtype))))


def _offsets_and_weight(types: Types, attrs: Mapping[str, Any]) -> Mapping[int, TensorType]:
    """Fills in the types of what moves the taps, and of the weight."""
    data = types[0]
    if data is None or attrs["channels"] is None or attrs["kernel_size"] is None:
        raise ValueError("the weight has no type, and channels and kernel_size don't say it")
    layout, kernel = attrs["data_layout"], dict(zip("HW", listed(attrs["kernel_size"], 2), strict=True))
    sizes = {letter: int(dim) for letter, dim in zip(layout, data.shape, strict=True)}
    edges, steps, spread = pads(attrs["padding"], 2), listed(attrs["strides"], 2), listed(attrs["dilation"], 2)
    out = dict(sizes, C=2 * kernel["H"] * kernel["W"] * attrs["deformable_groups"])
    for at, letter in enumerate("HW"):
        reach = (kernel[letter] - 1) * spread[at] + 1
        out[letter] = (sizes[letter] + edges[at] + edges[at + 2] - reach) // steps[at] + 1
    weight = kernel | {"O": attrs["channels"], "I": sizes["C"] // attrs["groups"]}
    return {
        1: TensorType([out[letter] for letter in layout], data.dtype),
        2: TensorType([weight[letter] for letter in attrs["kernel_layout"]], data.dtype),
    }


@operator("nn.deformable_conv2d", fill=_offsets_and_weight)
def deformable_conv2d(
    data: Tensor, offset: Tensor, weight: Tensor, strides: Sizes = (1, 1), padding: Sizes = (0, 0),
    dilation: Sizes = (1, 1), deformable_groups: int = 1, groups: int = 1, channels: int | None = None,
    kernel_size: Sizes | None = None, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "",
    out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """A convolution whose taps are moved by offsets (y, x for each tap of each deformable group)."""
    images, kernel = relayout(data, data_layout, "NHWC"), relayout(weight, kernel_layout, "HWIO")
    moves = relayout(offset, data_layout, "NCHW")
    height, width, inputs, outputs = (int(dim) for dim in kernel.ty.shape)
    batch, rows, columns = (int(moves.ty.shape[at]) for at in (0, 2, 3))
    (top, left, *_), steps, spread = pads(padding, 2), listed(strides, 2), listed(dilation, 2)
    parts = fields(R.split(images, deformable_groups, 3), deformable_groups) if deformable_groups > 1 else [images]
    image = relax.const(np.broadcast_to(np.arange(batch)[:, None, None], (batch, rows, columns)).copy(), "int64")
    taps = []
    for tap in range(height * width):
        begin = [steps[0] * np.arange(rows) - top + tap // width * spread[0]]
        begin.append(steps[1] * np.arange(columns) - left + tap % width * spread[1])
        sampled = []
        for group in range(deformable_groups):
            first = 2 * (group * height * width + tap)
            y = _moved(moves, first, begin[0].reshape(1, -1, 1))
            x = _moved(moves, first + 1, begin[1].reshape(1, 1, -1))
            sampled.append(_or_zero(parts[group], image, y, x))
        taps.append(R.concat(sampled, 3) if len(sampled) > 1 else sampled[0])
    # each tap is an image of its own by now, so that what is left is a convolution of one element
    whole = R.permute_dims(R.concat(taps, 3), [0, 3, 1, 2])
    if groups > 1:  # the taps of a group's channels lie together
        cut = R.reshape(whole, [batch, height * width, groups, inputs, rows, columns])
        whole = R.reshape(R.permute_dims(cut, [0, 2, 1, 3, 4, 5]), [batch, -1, rows, columns])
    flat = R.reshape(R.permute_dims(kernel, [3, 0, 1, 2]), [outputs, height * width * inputs, 1, 1])
    result = R.nn.conv2d(whole, flat, [1, 1], [0, 0, 0, 0], [1, 1], groups)
    laid = relayout(result, "NCHW", out_layout or data_layout)
    return R.astype(laid, out_dtype) if out_dtype and out_dtype != str(data.ty.dtype) else laid


def _moved(moves: Any, channel: int, begin: Any) -> Any:
    """Positions of a tap along one dimension, [batch, rows, columns]."""
    taken = R.squeeze(R.strided_slice(moves, [1], [channel], [channel + 1]), [1])
    return R.add(taken, relax.const(begin, str(moves.ty.dtype)))


def _is_in(position: Any, size: int) -> Any:
    return R.logical_and(
        R.greater_equal(position, number(0, position)), R.less(position, number(size, position))
    )


def _or_zero(images: Any, image: Any, y: Any, x: Any) -> Any:
    """The interpolated elements; positions outside of the image give zero, and so do neighbours outside of it."""
    rows, columns = (int(dim) for dim in list(images.ty.shape)[1:3])
    top, left, one = R.floor(y), R.floor(x), number(1, y)
    is_in = R.logical_and(_is_in(y, rows), _is_in(x, columns))
    total: Any = None
    for row, weight_y in ((top, R.subtract(R.add(top, one), y)), (R.add(top, one), R.subtract(y, top))):
        for column, weight_x in ((left, R.subtract(R.add(left, one), x)), (R.add(left, one), R.subtract(x, left))):
            inside = R.logical_and(is_in, R.logical_and(_within(row, rows), _within(column, columns)))
            share = R.where(inside, R.multiply(weight_y, weight_x), number(0, y))
            inner = [R.astype(image, "int64"), _clamped(row, rows), _clamped(column, columns)]
            part = R.multiply(R.gather_nd(images, R.stack(inner, 3), 0), R.expand_dims(share, 3))
            total = part if total is None else R.add(total, part)
    return total
