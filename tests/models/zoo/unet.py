"""U-Net: a contracting path, transposed convolutions back up, and what was cut across."""

import onnx

from tests.models.zoo.layers import concat, conv, max_pool, unit
from tests.models.zoo.network import Network

_WIDTHS = (32, 64, 128, 256)


def unet(size: int = 256) -> onnx.ModelProto:
    net = Network("unet", image=(1, 3, size, size))
    x, across = "image", []
    for width in _WIDTHS:
        across.append(_double(net, x, width))
        x = max_pool(net, across[-1], 2, 2)
    x = _double(net, x, 2 * _WIDTHS[-1])
    for width, left in zip(reversed(_WIDTHS), reversed(across), strict=True):
        x = _double(net, concat(net, left, _double_size(net, x, width)), width)
    return net.model(net.op("Sigmoid", conv(net, x, 1, 1)))


def _double(net: Network, x: str, width: int) -> str:
    return unit(net, unit(net, x, width, 3), width, 3)


def _double_size(net: Network, x: str, width: int) -> str:
    bias = net.constant(net.normal(width, deviation=0.1), "bias")
    weight = net.normal(net.shape(x)[1], width, 2, 2)
    return net.scaled("ConvTranspose", x, weight, bias, kernel_shape=[2, 2], strides=[2, 2])
