"""Images: resizing and sampling."""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_neuron.frontend.interpolate import interpolated
from tvm_neuron.frontend.onnx.interpolation import Axis, linear, positions, weights
from tvm_neuron.relay.op.convolution import listed
from tvm_neuron.relay.op.declare import R, Tensor, operator, rank_of_data
from tvm_neuron.relay.op.layouts import relayout

_METHODS = {"nearest": "nearest_neighbor", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def _resized(
    data: Any, size: Sequence[int], roi: Any, layout: str, method: str, coordinate_transformation_mode: str,
    rounding_method: str, cubic_alpha: float, cubic_exclude: int, extrapolation_value: float, out_dtype: str | None,
) -> Any:  # fmt: skip
    """By Relax's resize of two dimensions or of three; one dimension is two, of which the first has one element."""
    spatial = "".join(letter for letter in layout if letter not in "NC")
    given = relayout(data, layout, f"NC{spatial}")
    sizes = listed(size, len(spatial))
    old = [dim for letter, dim in zip(layout, data.ty.shape, strict=False) if letter in spatial]
    if _is_linear(data, layout, old, method, coordinate_transformation_mode, out_dtype):
        made = _interpolated(given, old, sizes, coordinate_transformation_mode)
        return relayout(made, f"NC{spatial}", layout)
    if len(spatial) == 1:
        given, sizes = R.expand_dims(given, 2), [1, *sizes]
        roi = (0.0, roi[0], 1.0, roi[1]) if roi else None
    flat = [at for at, count in enumerate(sizes) if count == 1 and coordinate_transformation_mode == "align_corners"]
    for at in flat:  # the corners of one element are one: TVM divides by their distance, so there are two for it
        given, sizes[at] = R.repeat(R.strided_slice(given, [2 + at], [0], [1]), 2, 2 + at), 2
    rounding = rounding_method or ("round" if coordinate_transformation_mode == "align_corners" else "floor")
    resize, plain = (R.image.resize3d, "NCDHW") if len(sizes) == 3 else (R.image.resize2d, "NCHW")
    resized = (resize(
        given, sizes, list(roi) if roi else [0.0] * (2 * len(sizes)), plain, _METHODS.get(method, method),
        coordinate_transformation_mode, rounding, cubic_alpha, cubic_exclude, extrapolation_value, out_dtype,
    ))  # fmt: skip
    for at in flat:
        resized = R.strided_slice(resized, [2 + at], [0], [1])
    resized = R.squeeze(resized, [2]) if len(spatial) == 1 else resized
    return relayout(resized, f"NC{spatial}", layout)


def _is_linear(
    data: Any, layout: str, old: Sequence[Any], method: str, mode: str, out_dtype: str | None
) -> bool:
    """Whether constant matrices give what is asked for."""
    is_blend = _METHODS.get(method, method) == "linear" and mode in ("half_pixel", "align_corners", "asymmetric")
    is_float = str(data.ty.dtype).startswith("float") and out_dtype in (None, "", str(data.ty.dtype))
    is_known = all(isinstance(dim, int | tvm.tirx.IntImm) for dim in old) and layout.isalpha()
    return is_blend and is_float and is_known


def _interpolated(data: Any, old: Sequence[Any], new: Sequence[int], mode: str) -> Any:
    """The dimensions after the second, each by a matrix [new, old].

    TVM's kernel finds places in float32, and on the core another element than it weighs where they are whole numbers.
    """
    for at, (before, after) in enumerate(zip(map(int, old), new, strict=True), 2):
        if before != after:
            axis = Axis(before, after, after / before)
            matrix = weights(positions(axis, mode), axis, linear, 1, antialias=False, exclude=False)
            data = interpolated(data, at, matrix, relax.BlockBuilder.current().normalize)
    return data


@operator("image.resize1d")
def resize1d(
    data: Tensor, size: Sequence[int], roi: Sequence[float] | None = None, layout: str = "NCW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
    cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """One spatial dimension in a new size."""
    return _resized(
        data, size, roi, layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha, cubic_exclude,
        extrapolation_value, out_dtype,
    )  # fmt: skip


@operator("image.resize2d", ranks=rank_of_data)
def resize2d(
    data: Tensor, size: Sequence[int], roi: Sequence[float] | None = None, layout: str = "NCHW",
    method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Two spatial dimensions in new sizes."""
    return _resized(
        data, size, roi, layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha, cubic_exclude,
        extrapolation_value, out_dtype,
    )  # fmt: skip


@operator("image.resize3d")
def resize3d(
    data: Tensor, size: Sequence[int], roi: Sequence[float] | None = None, layout: str = "NCDHW",
    method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Three spatial dimensions in new sizes."""
    return _resized(
        data, size, roi, layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha, cubic_exclude,
        extrapolation_value, out_dtype,
    )  # fmt: skip


@operator("nn.upsampling", ranks=rank_of_data)
def upsampling(
    data: Tensor, scale_h: float = 1, scale_w: float = 1, layout: str = "NCHW", method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Tensor:  # fmt: skip
    """Two spatial dimensions, each as many times as large."""
    size = [round(int(data.ty.shape[layout.index(at)]) * scale) for at, scale in (("H", scale_h), ("W", scale_w))]
    mode = "align_corners" if align_corners else "asymmetric"
    return _resized(data, size, None, layout, method, mode, "", -0.5, 0, 0.0, None)


@operator("nn.upsampling3d", ranks=rank_of_data)
def upsampling3d(
    data: Tensor, scale_d: float = 1, scale_h: float = 1, scale_w: float = 1, layout: str = "NCDHW",
    method: str = "nearest_neighbor", coordinate_transformation_mode: str = "half_pixel",
) -> Tensor:  # fmt: skip
    """Three spatial dimensions, each as many times as large."""
    scales = zip("DHW", (scale_d, scale_h, scale_w), strict=True)
    size = [round(int(data.ty.shape[layout.index(at)]) * scale) for at, scale in scales]
    return _resized(data, size, None, layout, method, coordinate_transformation_mode, "", -0.5, 0, 0.0, None)


@operator("image.grid_sample")
def grid_sample(
    data: Tensor, grid: Tensor, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:  # fmt: skip
    """The values at the coordinates of a grid, whose first dimension after the batch holds them."""
    return R.image.grid_sample(data, grid, method, layout, padding_mode, align_corners)


@operator("image.affine_grid")
def affine_grid(data: Tensor, target_shape: Sequence[int]) -> Tensor:
    """The grid of coordinates that matrices make of the target's."""
    return R.image.affine_grid(data, list(target_shape))
