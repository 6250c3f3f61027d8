"""Signals and windows: the short-time Fourier transform, sliding windows, morphology, fixed-point products."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_neuron.relay.op.convolution import Sizes, listed, pads
from tvm_neuron.relay.op.declare import OptionalTensor, R, Tensor, axis_of, operator
from tvm_neuron.relay.op.elementwise import number
from tvm_neuron.relay.op.layouts import relayout


@operator("stft")
def stft(
    data: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: OptionalTensor = None, normalized: bool = False, onesided: bool = True,
) -> Tensor:  # fmt: skip
    """The spectra of overlapping frames, [batch, frequencies, frames, 2]: real parts, then imaginary ones."""
    dtype, length = str(data.ty.dtype), int(data.ty.shape[-1])
    hop = hop_length or n_fft // 4
    starts = np.arange((length - n_fft) // hop + 1) * hop
    frames = R.take(data, relax.const(starts[:, None] + np.arange(n_fft)), int(data.ty.ndim) - 1)
    width = int(window.ty.shape[0]) if window is not None else win_length or n_fft
    shape = R.ones([width], dtype) if window is None else R.astype(window, dtype)
    before = (n_fft - width) // 2
    weighted = R.multiply(frames, R.nn.pad(shape, [before, n_fft - width - before]))
    angles = 2 * np.pi * np.outer(np.arange(n_fft), np.arange(n_fft // 2 + 1 if onesided else n_fft)) / n_fft
    scale = n_fft**-0.5 if normalized else 1.0
    parts = [R.matmul(weighted, relax.const(scale * part, dtype)) for part in (np.cos(angles), -np.sin(angles))]
    return R.permute_dims(R.stack(parts, 3), [0, 2, 1, 3])


@operator("sliding_window")
def sliding_window(data: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Windows over the dimensions from `axis` on; theirs come after those of where the windows are."""
    rank, count = int(data.ty.ndim), len(window_shape)
    first = axis_of(axis, rank)
    for step, (width, stride) in enumerate(zip(window_shape, strides, strict=True)):
        at = first + 2 * step  # those before have two dimensions each by now
        places = np.arange((int(data.ty.shape[at]) - width) // stride + 1)[:, None] * stride + np.arange(width)
        data = R.take(data, relax.const(places), at)
    windows = [first + 2 * step for step in range(count)]
    inner = [at + 1 for at in windows]
    return R.permute_dims(data, [*range(first), *windows, *range(first + 2 * count, rank + count), *inner])


@operator("image.dilation2d")
def dilation2d(
    data: Tensor, weight: Tensor, strides: Sizes = (1, 1), padding: Sizes = (0, 0), dilations: Sizes = (1, 1),
    data_layout: str = "NCHW", kernel_layout: str = "IHW", out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """The greatest sum of an element and its place in the structuring element, in each window."""
    given, element = relayout(data, data_layout, "NCHW"), relayout(weight, kernel_layout, "IHW")
    top, left, bottom, right = pads(padding, 2)
    lowest = _lowest(str(data.ty.dtype))
    padded = R.nn.pad(given, [0, 0, 0, 0, top, bottom, left, right], "constant", lowest)
    rows, columns = (int(dim) for dim in list(element.ty.shape)[1:])
    steps, spread = listed(strides, 2), listed(dilations, 2)
    reach = [(size - 1) * each for size, each in zip((rows, columns), spread, strict=True)]
    counts = [(int(padded.ty.shape[2 + at]) - reach[at] - 1) // steps[at] + 1 for at in (0, 1)]
    greatest: Any = None
    for row in range(rows):
        for column in range(columns):
            begin = [row * spread[0], column * spread[1]]
            end = [start + (count - 1) * step + 1 for start, count, step in zip(begin, counts, steps, strict=True)]
            part = R.strided_slice(padded, [2, 3], begin, end, steps)
            weight_there = R.strided_slice(element, [1, 2], [row, column], [row + 1, column + 1])
            total = R.add(part, R.expand_dims(weight_there, 0))
            greatest = total if greatest is None else R.maximum(greatest, total)
    result = relayout(greatest, "NCHW", data_layout)
    return R.astype(result, out_dtype) if out_dtype and out_dtype != str(data.ty.dtype) else result


def _lowest(dtype: str) -> float:
    return float(np.finfo(dtype).min if "float" in dtype else np.iinfo(dtype).min)


@operator("fixed_point_multiply")
def fixed_point_multiply(data: Tensor, multiplier: int, shift: int) -> Tensor:
    """`data` times `multiplier` / 2**31 times 2**`shift`, rounded to the nearest whole number, halves upward."""
    wide, down = R.astype(data, "int64"), 31 - shift
    product = R.add(R.multiply(wide, number(multiplier, wide)), number(1 << (down - 1), wide))
    return R.astype(R.right_shift(product, number(down, product)), str(data.ty.dtype))


@operator("vision.yolo_reorg")
def yolo_reorg(data: Tensor, stride: int) -> Tensor:
    """The elements of Darknet's reorganisation layer: blocks of space as channels, in its order."""
    batch, channels, rows, columns = (int(dim) for dim in data.ty.shape)
    kept = channels // stride**2
    image, k, j, i = np.ogrid[:batch, :channels, :rows, :columns]
    across, down = i * stride + k // kept % stride, j * stride + k // kept // stride
    places = across + columns * stride * (down + rows * stride * (k % kept + kept * image))
    taken = R.take(R.reshape(data, [-1]), relax.const(places.ravel()), 0)
    return R.reshape(taken, [batch, channels * stride**2, rows // stride, columns // stride])
