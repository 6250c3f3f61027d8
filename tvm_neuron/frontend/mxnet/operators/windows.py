"""Convolutions, pooling, and enlarging of images."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter
from tvm_neuron.frontend.refused import RefusedError

_LAYOUTS = ("NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC")


def _is_last(net: Network, at: Attributes, data: str) -> bool:
    """Whether channels are the last dimension."""
    rank = net.rank(data)
    if not 3 <= rank <= 5:
        raise RefusedError(f"its input has {rank} dimensions, not 3 to 5")
    layout = at.text("layout", _LAYOUTS[rank - 3], _LAYOUTS)
    if len(layout) != rank:
        raise RefusedError(f"layout = {layout} of an input of {rank} dimensions")
    return layout.endswith("C")


def _convolution(net: Network, at: Attributes, data: str, weight: str, bias: str = "") -> str:
    is_last = _is_last(net, at, data)
    if is_last:
        data, weight = net.moved(data, -1, 1), net.moved(weight, -1, 1)
    kernel = at.sizes("kernel")
    one, none = [1] * len(kernel), [0] * len(kernel)
    at.skip("num_filter")  # as many as the weights have
    pads = at.sizes("pad", none)
    found = net.add(
        "Conv", data, weight, *_bias(at, bias, default=False), kernel_shape=kernel, strides=at.sizes("stride", one),
        dilations=at.sizes("dilate", one), pads=[*pads, *pads], group=at.whole("num_group", 1),
    )  # fmt: skip
    return net.moved(found, 1, -1) if is_last else str(found)


def _deconvolution(net: Network, at: Attributes, data: str, weight: str, bias: str = "") -> str:
    if _is_last(net, at, data):
        raise RefusedError("channels are the last dimension")
    kernel = at.sizes("kernel")
    one, none = [1] * len(kernel), [0] * len(kernel)
    at.skip("num_filter")
    strides, dilations = at.sizes("stride", one), at.sizes("dilate", one)
    pads, more, target = at.sizes("pad", none), at.sizes("adj", none), at.sizes("target_shape", ())
    if any(target):
        rows = zip(net.shape(data)[2:], strides, kernel, dilations, target, strict=True)
        over = [stride * (size - 1) + dilation * (k - 1) + 1 - goal for size, stride, k, dilation, goal in rows]
        if min(over) < 0:
            raise RefusedError(f"target_shape = {target} is larger than what the kernel reaches")
        pads, more = tuple((each + 1) // 2 for each in over), tuple(each % 2 for each in over)
    return str(
        net.add(
            "ConvTranspose", data, weight, *_bias(at, bias, default=True), kernel_shape=kernel, strides=strides,
            dilations=dilations, pads=[*pads, *pads], output_padding=more, group=at.whole("num_group", 1),
        )
    )  # fmt: skip


def _bias(at: Attributes, bias: str, default: bool) -> list[str]:
    is_without = at.flag("no_bias", default)
    if is_without == bool(bias):
        raise RefusedError(f"no_bias = {is_without} {'with' if bias else 'without'} a bias")
    return [bias] if bias else []


def _pooling(net: Network, at: Attributes, data: str) -> str:
    is_last = _is_last(net, at, data)
    if is_last:
        data = net.moved(data, -1, 1)
    kind = at.text("pool_type", "max", ("max", "avg", "sum", "lp"))
    power = at.whole("p_value", 2)
    if at.flag("global_pool"):
        at.skip("kernel", "stride", "pad", "pooling_convention", "count_include_pad")
        found = _of_all(net, kind, data, power)
    else:
        found = _of_windows(net, at, kind, data, power)
    return net.moved(found, 1, -1) if is_last else found


def _of_all(net: Network, kind: str, data: str, power: int) -> str:
    if kind == "sum":
        return str(net.add("ReduceSum", data, net.ints([*range(2, net.rank(data))]), keepdims=1))
    if kind == "lp":
        return str(net.add("GlobalLpPool", data, p=power))
    return str(net.add("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", data))


def _of_windows(net: Network, at: Attributes, kind: str, data: str, power: int) -> str:
    kernel = at.sizes("kernel")
    strides, pads = at.sizes("stride", [1] * len(kernel)), at.sizes("pad", [0] * len(kernel))
    is_full = at.text("pooling_convention", "valid", ("valid", "full")) == "full"
    sizes = net.shape(data)[2:]
    over = [_missing(*each) if is_full else 0 for each in zip(sizes, kernel, strides, pads, strict=True)]
    told: dict[str, Any] = {
        "kernel_shape": kernel, "strides": strides,
        "pads": [*pads, *(pad + more for pad, more in zip(pads, over, strict=True))],
    }  # fmt: skip
    counts_padding = at.flag("count_include_pad", True)
    if kind == "max":
        return str(net.add("MaxPool", data, **told))
    if kind == "lp":
        return str(net.add("LpPool", data, p=power, **told))
    if kind == "avg" and not counts_padding:
        return str(net.add("AveragePool", data, count_include_pad=0, **told))
    mean = net.add("AveragePool", data, count_include_pad=1, **told)
    if kind == "sum":
        return str(net.add("Mul", mean, net.number(prod(kernel), data)))
    if not any(over):
        return str(mean)
    rows = zip(net.shape(mean)[2:], sizes, kernel, strides, pads, strict=True)
    return str(net.add("Mul", mean, net.constant(_shares([*rows]), net.dtype(data))))


def _missing(size: int, kernel: int, stride: int, pad: int) -> int:
    """How far the last window reaches behind the padding, where windows cover all there is (`full`)."""
    return -(size + 2 * pad - kernel) % stride


def _shares(rows: Sequence[tuple[int, int, int, int, int]]) -> np.ndarray:
    """By what a mean over whole windows is to be multiplied, where what lies behind the padding does not count."""
    found = np.ones(1)
    for windows, size, kernel, stride, pad in rows:
        starts = np.arange(windows) * stride - pad
        counted = np.minimum(starts + kernel, size + pad) - starts
        found = np.multiply.outer(found, kernel / counted)
    return found


def _enlarge(net: Network, at: Attributes, *data: str) -> str:
    kind, scale = at.text("sample_type", "nearest", ("nearest", "bilinear")), at.whole("scale")
    at.skip("num_filter")
    if kind == "bilinear":
        return _bilinear(net, scale, *data)
    how = at.text("multi_input_mode", "concat", ("concat", "sum"))
    height, width = (size * scale for size in net.shape(data[0])[2:])
    large = [_nearest(net, each, height // net.shape(each)[2], width // net.shape(each)[3]) for each in data]
    if len(large) == 1:
        return large[0]
    return str(net.add("Sum", *large) if how == "sum" else net.add("Concat", *large, axis=1))


def _nearest(net: Network, data: str, by_height: int, by_width: int) -> str:
    scales = net.constant([1, 1, by_height, by_width], np.float32)
    return str(
        net.add("Resize", data, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                nearest_mode="floor")
    )  # fmt: skip


def _bilinear(net: Network, scale: int, data: str, weight: str) -> str:
    """A deconvolution of each channel, whose weights are the model's own."""
    kernel, pad = 2 * scale - scale % 2, -(-(scale - 1) // 2)
    return str(
        net.add("ConvTranspose", data, weight, kernel_shape=[kernel] * 2, strides=[scale] * 2, pads=[pad] * 4,
                group=net.shape(data)[1])
    )  # fmt: skip


CONVERTERS: dict[str, Converter] = {
    "Convolution": _convolution, "Convolution_v1": _convolution, "Deconvolution": _deconvolution,
    "Pooling": _pooling, "Pooling_v1": _pooling, "UpSampling": _enlarge,
}  # fmt: skip
