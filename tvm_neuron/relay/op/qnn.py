"""Quantised tensors: whole numbers that stand for (number - zero point) * scale."""

from typing import Any

from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.relay.op.convolution import Sizes, convolve, transposed
from tvm_neuron.relay.op.declare import R, Tensor, axis_of, operator

_RANGES = {
    "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip
_ROUNDINGS = {"None": True, "UPWARD": True, "TONEAREST": False}
"""Whether halves become the larger number."""


def _along(value: Any, axis: int, rank: int) -> Any:
    """A number for all, or one for each position of an axis of a tensor of `rank` axes."""
    if not int(value.ty.ndim):
        return value
    shape = [1] * rank
    shape[axis_of(axis, rank) if rank else 0] = -1
    return R.reshape(value, shape)


def _centred(data: Any, zero: Any, axis: int) -> Any:
    """The numbers minus their zero point, in int32."""
    return R.subtract(R.astype(data, "int32"), R.astype(_along(zero, axis, int(data.ty.ndim)), "int32"))


def _real(data: Any, scale: Any, zero: Any, axis: int) -> Any:
    return R.multiply(R.astype(_centred(data, zero, axis), "float32"), _along(scale, axis, int(data.ty.ndim)))


def _stored(value: Any, scale: Any, zero: Any, axis: int, dtype: str, is_upward: bool = False) -> Any:
    """What floats are stored as: the nearest number, halves to the larger or away from zero."""
    if dtype not in _RANGES:
        raise ModelError(f"out_dtype is '{dtype}'; there are {', '.join(_RANGES)}")
    rank = int(value.ty.ndim)
    ratio = R.divide(value, _along(scale, axis, rank))
    half = relax.const(0.5, "float32")
    size = ratio if is_upward else R.abs(ratio)
    nearest = R.floor(R.add(size, half))
    whole = nearest if is_upward else R.multiply(R.sign(ratio), nearest)
    moved = R.add(whole, R.astype(_along(zero, axis, rank), "float32"))
    clipped = moved if dtype == "int32" else R.clip(moved, *_RANGES[dtype])  # whose largest is no float32
    return R.astype(clipped, dtype)


@operator("qnn.quantize")
def quantize(
    data: Tensor, output_scale: Tensor, output_zero_point: Tensor, axis: int = -1, out_dtype: str = "int8"
) -> Tensor:
    """Floats as whole numbers, saturated."""
    return _stored(data, output_scale, output_zero_point, axis, out_dtype)


@operator("qnn.dequantize")
def dequantize(
    data: Tensor, input_scale: Tensor, input_zero_point: Tensor, axis: int = -1, out_dtype: str = "float32"
) -> Tensor:
    """The floats that whole numbers stand for."""
    real = _real(data, input_scale, input_zero_point, axis)
    return R.astype(real, out_dtype) if out_dtype != "float32" else real


@operator("qnn.requantize")
def requantize(
    data: Tensor, input_scale: Tensor, input_zero_point: Tensor, output_scale: Tensor, output_zero_point: Tensor,
    axis: int = -1, rounding: str = "None", compute_dtype: str = "None", out_dtype: str = "int8",
) -> Tensor:  # fmt: skip
    """Whole numbers of another scale and zero point; computed in float32."""
    del compute_dtype
    if rounding not in _ROUNDINGS:
        raise ModelError(f"rounding is '{rounding}'; there are UPWARD and TONEAREST")
    real = _real(data, input_scale, input_zero_point, axis)
    return _stored(real, output_scale, output_zero_point, axis, out_dtype, _ROUNDINGS[rounding])


@operator("qnn.conv2d")
def conv2d(
    data: Tensor, kernel: Tensor, input_zero_point: Tensor, kernel_zero_point: Tensor, input_scale: Tensor,
    kernel_scale: Tensor, kernel_size: Sizes, channels: int, strides: Sizes = (1, 1), padding: Sizes = (0, 0),
    dilation: Sizes = (1, 1), groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
    out_layout: str = "", out_dtype: str = "int32",
) -> Tensor:  # fmt: skip
    """A convolution of what numbers are above their zero points; its scale is the product of both."""
    del input_scale, kernel_scale, kernel_size, channels
    given = _centred(data, input_zero_point, 0)
    weights = _centred(kernel, kernel_zero_point, kernel_layout.index("O"))
    return convolve(
        2, given, weights, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype
    )


@operator("qnn.conv2d_transpose")
def conv2d_transpose(
    data: Tensor, weight: Tensor, input_zero_point: Tensor, kernel_zero_point: Tensor, input_scale: Tensor,
    kernel_scale: Tensor, strides: Sizes = (1, 1), padding: Sizes = (0, 0), dilation: Sizes = (1, 1),
    groups: int = 1, channels: int | None = None, kernel_size: Sizes | None = None, data_layout: str = "NCHW",
    kernel_layout: str = "IOHW", out_layout: str = "", output_padding: Sizes = (0, 0), out_dtype: str = "int32",
) -> Tensor:  # fmt: skip
    """The transpose of such a convolution."""
    del input_scale, kernel_scale, channels, kernel_size
    given = _centred(data, input_zero_point, 0)
    weights = _centred(weight, kernel_zero_point, kernel_layout.index("O"))
    return transposed(
        2, given, weights, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, output_padding,
        out_dtype,
    )  # fmt: skip


@operator("qnn.dense")
def dense(
    data: Tensor, weight: Tensor, input_zero_point: Tensor, kernel_zero_point: Tensor, input_scale: Tensor,
    kernel_scale: Tensor, units: int, out_dtype: str = "int32",
) -> Tensor:  # fmt: skip
    """`data` [rows, K] times the transpose of `weight` [units, K], both above their zero points."""
    del input_scale, kernel_scale, units
    turned = R.permute_dims(_centred(weight, kernel_zero_point, 0))
    return R.astype(R.matmul(_centred(data, input_zero_point, 0), turned), out_dtype)


@operator("qnn.batch_matmul")
def batch_matmul(
    x: Tensor, y: Tensor, x_zero_point: Tensor, y_zero_point: Tensor, x_scale: Tensor, y_scale: Tensor,
    out_dtype: str = "int32",
) -> Tensor:  # fmt: skip
    """Products of matrices, the second transposed, both above their zero points."""
    del x_scale, y_scale
    turned = R.permute_dims(_centred(y, y_zero_point, 0), [0, 2, 1])
    return R.astype(R.matmul(_centred(x, x_zero_point, 0), turned), out_dtype)


def _of_two(name: str, function: Any, meaning: str) -> None:
    def body(
        lhs: Tensor, rhs: Tensor, lhs_scale: Tensor, lhs_zero_point: Tensor, rhs_scale: Tensor, rhs_zero_point: Tensor,
        output_scale: Tensor, output_zero_point: Tensor, lhs_axis: int = -1, rhs_axis: int = -1,
    ) -> Tensor:  # fmt: skip
        one = _real(lhs, lhs_scale, lhs_zero_point, lhs_axis)
        other = _real(rhs, rhs_scale, rhs_zero_point, rhs_axis)
        return _stored(function(one, other), output_scale, output_zero_point, -1, str(lhs.ty.dtype))

    body.__name__, body.__doc__ = name, f"{meaning} of what they stand for, stored again."
    operator(f"qnn.{name}")(body)


_of_two("add", R.add, "The sum")
_of_two("subtract", R.subtract, "The difference")
_of_two("mul", R.multiply, "The product")


def _of_one(name: str, function: Any, meaning: str) -> None:
    def body(x: Tensor, scale: Tensor, zero_point: Tensor, output_scale: Tensor, output_zero_point: Tensor) -> Tensor:
        real = function(_real(x, scale, zero_point, -1))
        return _stored(real, output_scale, output_zero_point, -1, str(x.ty.dtype))

    body.__name__, body.__doc__ = name, f"{meaning} of what it stands for, stored again."
    operator(f"qnn.{name}")(body)


def _hardswish(x: Any) -> Any:
    return R.multiply(x, R.multiply(R.clip(R.add(x, relax.const(3.0, "float32")), 0, 6), relax.const(1 / 6, "float32")))


_of_one("tanh", R.tanh, "The hyperbolic tangent")
_of_one("exp", R.exp, "The exponential")
_of_one("sqrt", R.sqrt, "The square root")
_of_one("rsqrt", R.rsqrt, "One over the square root")
_of_one("erf", R.erf, "The error function")
_of_one("abs", R.abs, "The absolute value")
_of_one("sigmoid", R.sigmoid, "1 / (1 + exp(-x))")
_of_one("hardswish", _hardswish, "x * clip(x + 3, 0, 6) / 6")
_of_one("log", R.log, "The natural logarithm")


@operator("qnn.leaky_relu")
def leaky_relu(
    x: Tensor, alpha: float, input_scale: Tensor, input_zero_point: Tensor, output_scale: Tensor,
    output_zero_point: Tensor,
) -> Tensor:  # fmt: skip
    """x where it is positive, else alpha * x, of what it stands for, stored again."""
    real = R.nn.leakyrelu(_real(x, input_scale, input_zero_point, -1), alpha)
    return _stored(real, output_scale, output_zero_point, -1, str(x.ty.dtype))


@operator("qnn.softmax")
def softmax(
    x: Tensor, scale: Tensor, zero_point: Tensor, output_scale: Tensor, output_zero_point: Tensor, axis: int = -1
) -> Tensor:
    """The softmax of what it stands for, stored again."""
    real = R.nn.softmax(_real(x, scale, zero_point, -1), axis)
    return _stored(real, output_scale, output_zero_point, -1, str(x.ty.dtype))


@operator("qnn.concatenate")
def concatenate(
    data: Tensor, input_scales: Tensor, input_zero_points: Tensor, output_scale: Tensor, output_zero_point: Tensor,
    axis: int,
) -> Tensor:  # fmt: skip
    """Tensors with scales and zero points of their own side by side, in one scale."""
    stored = [
        _stored(_real(x, scale, zero, -1), output_scale, output_zero_point, -1, str(x.ty.dtype), is_upward=True)
        for x, scale, zero in zip(data, input_scales, input_zero_points, strict=True)
    ]
    return R.concat(stored, axis)
