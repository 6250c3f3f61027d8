"""Convolutions and their transposes, of one to three spatial dimensions and in any layout."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_neuron.relay.ir.ty import TensorType
from tvm_neuron.relay.op.declare import R, Tensor, Types, operator
from tvm_neuron.relay.op.layouts import blocked, joined_size, relayout

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
_CONV = {1: R.nn.conv1d, 2: R.nn.conv2d, 3: R.nn.conv3d}
_TRANSPOSE = {1: R.nn.conv1d_transpose, 2: R.nn.conv2d_transpose, 3: R.nn.conv3d_transpose}

Sizes = int | Sequence[int]


def listed(value: Sizes, count: int) -> list[int]:
    """A number for each spatial dimension; one number counts for all."""
    numbers = [value] if isinstance(value, int) else [int(each) for each in value]
    return numbers * count if len(numbers) == 1 else numbers


def pads(padding: Sizes, count: int) -> list[int]:
    """Padding before all spatial dimensions, then after them; Relay also took one number, or one a dimension."""
    numbers = listed(padding, count)
    return numbers * 2 if len(numbers) == count else numbers


def _cast(dtype: str, *tensors: Any) -> list[Any]:
    """In the dtype of the result, as Relay's kernels read them; its type relation let weights have another."""
    return [each if str(each.ty.dtype) == dtype else R.astype(each, dtype) for each in tensors]


def _weight(count: int, is_transpose: bool) -> Any:
    """Fills in the type of a weight from the channels and the kernel's size."""

    def fill(types: Types, attrs: Mapping[str, Any]) -> Mapping[int, TensorType]:
        data = types[0]
        if data is None or attrs["channels"] is None or attrs["kernel_size"] is None:
            raise ValueError("the weight has no type, and channels and kernel_size don't say it")
        inputs = joined_size(data.shape, attrs["data_layout"], "C")
        layout, groups = attrs["kernel_layout"], attrs["groups"]
        sizes = dict(zip(_SPATIAL[count], listed(attrs["kernel_size"], count), strict=True))
        if is_transpose:
            sizes |= {"I": inputs, "O": attrs["channels"] // groups}
        elif layout == "HWOI":  # a depthwise convolution: the output channels of each input
            sizes |= {"O": inputs, "I": attrs["channels"] // inputs}
        else:
            sizes |= {"O": attrs["channels"], "I": inputs // groups}
        return {1: TensorType(blocked(sizes, layout), data.dtype)}

    return fill


def convolve(
    count: int, data: Any, weight: Any, strides: Sizes, padding: Sizes, dilation: Sizes, groups: int, data_layout: str,
    kernel_layout: str, out_layout: str, out_dtype: str,
) -> Any:  # fmt: skip
    """The body of a convolution over `count` dimensions."""
    plain, kernel = f"NC{_SPATIAL[count]}", f"OI{_SPATIAL[count]}"
    given, weights = relayout(data, data_layout, plain), relayout(weight, kernel_layout, kernel)
    inputs = int(given.ty.shape[1])
    if int(weights.ty.shape[1]) * groups != inputs:  # depthwise, its multiplier a dimension of its own
        weights = R.reshape(weights, [-1, inputs // groups, *list(weights.ty.shape)[2:]])
    given, weights = _cast(out_dtype or str(data.ty.dtype), given, weights)
    result = _CONV[count](
        given, weights, listed(strides, count), pads(padding, count), listed(dilation, count), groups, plain, kernel
    )
    return relayout(result, plain, out_layout or data_layout)


def transposed(
    count: int, data: Any, weight: Any, strides: Sizes, padding: Sizes, dilation: Sizes, groups: int, data_layout: str,
    kernel_layout: str, out_layout: str, output_padding: Sizes, out_dtype: str,
) -> Any:  # fmt: skip
    """The body of the transpose of one."""
    plain, kernel = f"NC{_SPATIAL[count]}", f"IO{_SPATIAL[count]}"
    given, weights = relayout(data, data_layout, plain), relayout(weight, kernel_layout, kernel)
    given, weights = _cast(out_dtype or str(data.ty.dtype), given, weights)
    # what is added to the output is less of it cut off, and zeros where nothing was: Relax takes less than a stride
    edges, more = pads(padding, count), listed(output_padding, count)
    cut = [*edges[:count], *(max(edge - each, 0) for edge, each in zip(edges[count:], more, strict=True))]
    beyond = [max(each - edge, 0) for edge, each in zip(edges[count:], more, strict=True)]
    result = _TRANSPOSE[count](
        given, weights, listed(strides, count), cut, [0] * count, listed(dilation, count), groups, plain, kernel
    )
    if any(beyond):
        result = R.nn.pad(result, [0, 0, 0, 0, *(width for each in beyond for width in (0, each))])
    return relayout(result, plain, out_layout or data_layout)


@operator("nn.conv1d", fill=_weight(1, is_transpose=False))
def conv1d(
    data: Tensor, weight: Tensor, strides: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1,
    channels: int | None = None, kernel_size: Sizes | None = None, data_layout: str = "NCW",
    kernel_layout: str = "OIW", out_layout: str = "", out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """A convolution over one dimension."""
    return convolve(
        1, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype
    )


@operator("nn.conv2d", fill=_weight(2, is_transpose=False))
def conv2d(
    data: Tensor, weight: Tensor, strides: Sizes = (1, 1), padding: Sizes = (0, 0), dilation: Sizes = (1, 1),
    groups: int = 1, channels: int | None = None, kernel_size: Sizes | None = None, data_layout: str = "NCHW",
    kernel_layout: str = "OIHW", out_layout: str = "", out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """A convolution over two dimensions."""
    return convolve(
        2, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype
    )


@operator("nn.conv3d", fill=_weight(3, is_transpose=False))
def conv3d(
    data: Tensor, weight: Tensor, strides: Sizes = (1, 1, 1), padding: Sizes = (0, 0, 0),
    dilation: Sizes = (1, 1, 1), groups: int = 1, channels: int | None = None, kernel_size: Sizes | None = None,
    data_layout: str = "NCDHW", kernel_layout: str = "OIDHW", out_layout: str = "", out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """A convolution over three dimensions."""
    return convolve(
        3, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype
    )


@operator("nn.conv1d_transpose", fill=_weight(1, is_transpose=True))
def conv1d_transpose(
    data: Tensor, weight: Tensor, strides: Sizes = (1,), padding: Sizes = (0,), dilation: Sizes = (1,),
    groups: int = 1, channels: int | None = None, kernel_size: Sizes | None = None, data_layout: str = "NCW",
    kernel_layout: str = "IOW", out_layout: str = "", output_padding: Sizes = (0,), out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """The transpose of a convolution over one dimension."""
    return transposed(
        1, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, output_padding,
        out_dtype,
    )  # fmt: skip


@operator("nn.conv2d_transpose", fill=_weight(2, is_transpose=True))
def conv2d_transpose(
    data: Tensor, weight: Tensor, strides: Sizes = (1, 1), padding: Sizes = (0, 0), dilation: Sizes = (1, 1),
    groups: int = 1, channels: int | None = None, kernel_size: Sizes | None = None, data_layout: str = "NCHW",
    kernel_layout: str = "IOHW", out_layout: str = "", output_padding: Sizes = (0, 0), out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """The transpose of a convolution over two dimensions."""
    return transposed(
        2, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, output_padding,
        out_dtype,
    )  # fmt: skip


@operator("nn.conv3d_transpose", fill=_weight(3, is_transpose=True))
def conv3d_transpose(
    data: Tensor, weight: Tensor, strides: Sizes = (1, 1, 1), padding: Sizes = (0, 0, 0),
    dilation: Sizes = (1, 1, 1), groups: int = 1, channels: int | None = None, kernel_size: Sizes | None = None,
    data_layout: str = "NCDHW", kernel_layout: str = "IODHW", out_layout: str = "",
    output_padding: Sizes = (0, 0, 0), out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """The transpose of a convolution over three dimensions."""
    return transposed(
        3, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, output_padding,
        out_dtype,
    )  # fmt: skip
