"""Layers of convolutional networks: NCHW activations, random weights."""

import math

import numpy as np

from tests.models.zoo.network import MEAN_REMOVED, Network


def conv(
    net: Network, x: str, channels: int, kernel: int | tuple[int, ...], stride: int = 1, *, pad: int | None = None,
    groups: int = 1, dilation: int = 1, bias: bool = True, gain: float = 1.0,
) -> str:  # fmt: skip
    """A convolution in as many dimensions as `x` has; unpadded if `pad` is 0, else as large as its input / stride."""
    shape = net.shape(x)
    spatial = len(shape) - 2
    kernels = (kernel,) * spatial if isinstance(kernel, int) else kernel
    pads = [dilation * (k - 1) // 2 if pad is None else pad for k in kernels] * 2
    weight = net.normal(channels, shape[1] // groups, *kernels)
    added = net.constant(net.normal(channels, deviation=0.1 * gain), "bias") if bias else ""
    return net.scaled(
        "Conv", x, weight, added, gain, kernel_shape=kernels, strides=[stride] * spatial, pads=pads,
        dilations=[dilation] * spatial, group=groups,
    )  # fmt: skip


def batch_norm(net: Network, x: str, gain: float = 1.0) -> str:
    """Normalisation by what the channels of `x` hold, as after training, but for the part of the mean that is kept."""
    values = np.moveaxis(net.values[x], 1, 0).reshape(net.shape(x)[1], -1).astype(np.float64)
    mean = MEAN_REMOVED * values.mean(1)
    scale = net.rng.uniform(0.5, 1.5, len(values)) * gain / math.sqrt(1.083)  # 1.083 = E[scale^2]
    parameters = (scale, 0.1 * gain * net.normal(len(values)), mean, np.square(values - mean[:, None]).mean(1))
    names = [net.constant(p.astype(np.float32), "norm") for p in parameters]
    return net.op("BatchNormalization", x, *names, epsilon=1e-3)


def activate(net: Network, x: str, function: str) -> str:
    """An activation function by its usual name."""
    match function:
        case "relu":
            return net.op("Relu", x)
        case "relu6":
            return net.op("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(6)))
        case "leaky":
            return net.op("LeakyRelu", x, alpha=0.1)
        case "hard_swish":
            return net.op("HardSwish", x)
        case "sigmoid":
            return net.op("Sigmoid", x)
        case "hard_sigmoid":
            return net.op("HardSigmoid", x, alpha=1 / 6)
        case "swish":
            return net.op("Mul", x, net.op("Sigmoid", x))
        case "mish":
            return net.op("Mish", x)
        case "linear":
            return x
    raise KeyError(function)


def unit(
    net: Network, x: str, channels: int, kernel: int | tuple[int, ...], stride: int = 1, function: str = "relu", *,
    pad: int | None = None, groups: int = 1, gain: float = 1.0,
) -> str:  # fmt: skip
    """Convolution, batch norm, activation."""
    y = conv(net, x, channels, kernel, stride, pad=pad, groups=groups, bias=False)
    return activate(net, batch_norm(net, y, gain), function)


def max_pool(net: Network, x: str, kernel: int, stride: int, pad: int = 0, ceil: bool = False) -> str:
    """Max pooling."""
    return net.op("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=int(ceil))


def average_pool(net: Network, x: str, kernel: int, stride: int = 1, pad: int = 0) -> str:
    """Average pooling that counts the padding, as torch does."""
    return net.op(
        "AveragePool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, count_include_pad=1
    )


def squeeze_excite(net: Network, x: str, channels: int, inner: str, gate: str) -> str:
    """Each channel times a gate computed from all channels' means."""
    y = activate(net, conv(net, net.op("GlobalAveragePool", x), channels, 1), inner)
    return net.op("Mul", x, activate(net, conv(net, y, net.shape(x)[1], 1), gate))


def upsample(net: Network, x: str) -> str:
    """Twice as high and wide, nearest neighbours."""
    scales = net.constant(np.array([1, 1, 2, 2], np.float32), "scales")
    return net.op(
        "Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


def concat(net: Network, *parts: str, axis: int = 1) -> str:
    """Concatenation, of channels by default."""
    return net.op("Concat", *parts, axis=axis)


def dense(net: Network, x: str, width: int, gain: float = 1.0) -> str:
    """A fully connected layer on [N, C]."""
    bias = net.constant(net.normal(width, deviation=0.1 * gain), "bias")
    return net.scaled("Gemm", x, net.normal(width, net.shape(x)[1]), bias, gain, transB=1)


def classifier(net: Network, x: str, classes: int = 1000) -> str:
    """Global mean, logits, probabilities."""
    flat = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.op("Softmax", dense(net, flat, classes, gain=1.0), axis=1)
