"""MobileNetV2, MobileNetV3-Large and EfficientNet-B0: inverted residuals around a depthwise convolution."""

import onnx

from tests.models.zoo.layers import activate, classifier, conv, squeeze_excite, unit
from tests.models.zoo.network import Network

_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks, first stride."""
_V3 = (
    (3, 16, 16, False, "relu", 1), (3, 64, 24, False, "relu", 2), (3, 72, 24, False, "relu", 1),
    (5, 72, 40, True, "relu", 2), (5, 120, 40, True, "relu", 1), (5, 120, 40, True, "relu", 1),
    (3, 240, 80, False, "hard_swish", 2), (3, 200, 80, False, "hard_swish", 1), (3, 184, 80, False, "hard_swish", 1),
    (3, 184, 80, False, "hard_swish", 1), (3, 480, 112, True, "hard_swish", 1), (3, 672, 112, True, "hard_swish", 1),
    (5, 672, 160, True, "hard_swish", 2), (5, 960, 160, True, "hard_swish", 1), (5, 960, 160, True, "hard_swish", 1),
)  # fmt: skip
"""Kernel, expanded channels, channels, squeeze-excite, activation, stride."""
_B0 = (
    (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)  # fmt: skip
"""Expansion, kernel, channels, blocks, first stride."""


def mobilenet_v2(size: int = 224) -> onnx.ModelProto:
    net = Network("mobilenet_v2", image=(1, 3, size, size))
    x = unit(net, "image", 32, 3, 2, "relu6")
    for expansion, channels, blocks, stride in _V2:
        for block in range(blocks):
            x = _inverted(net, x, expansion * net.shape(x)[1], channels, 3, stride if block == 0 else 1, "relu6")
    return net.model(classifier(net, unit(net, x, 1280, 1, function="relu6")))


def mobilenet_v3(size: int = 224) -> onnx.ModelProto:
    net = Network("mobilenet_v3", image=(1, 3, size, size))
    x = unit(net, "image", 16, 3, 2, "hard_swish")
    for kernel, expanded, channels, squeezed, function, stride in _V3:
        gates = ("relu", "hard_sigmoid", expanded // 4) if squeezed else None
        x = _inverted(net, x, expanded, channels, kernel, stride, function, gates)
    x = net.op("GlobalAveragePool", unit(net, x, 960, 1, function="hard_swish"))
    return net.model(classifier(net, activate(net, conv(net, x, 1280, 1), "hard_swish")))


def efficientnet_b0(size: int = 224) -> onnx.ModelProto:
    net = Network("efficientnet_b0", image=(1, 3, size, size))
    x = unit(net, "image", 32, 3, 2, "swish")
    for expansion, kernel, channels, blocks, first in _B0:
        for block in range(blocks):
            before = net.shape(x)[1]
            gates = ("swish", "sigmoid", max(1, before // 4))
            stride = first if block == 0 else 1
            x = _inverted(net, x, expansion * before, channels, kernel, stride, "swish", gates)
    return net.model(classifier(net, unit(net, x, 1280, 1, function="swish")))


def _inverted(
    net: Network, x: str, expanded: int, channels: int, kernel: int, stride: int, function: str,
    gates: tuple[str, str, int] | None = None,
) -> str:  # fmt: skip
    y = x if expanded == net.shape(x)[1] else unit(net, x, expanded, 1, function=function)
    y = unit(net, y, expanded, kernel, stride, function, groups=expanded)
    if gates is not None:
        inner, gate, width = gates
        y = squeeze_excite(net, y, width, inner, gate)
    is_residual = net.shape(x)[1] == channels and stride == 1
    y = unit(net, y, channels, 1, function="linear", gain=0.5 if is_residual else 1.0)
    return net.op("Add", x, y) if is_residual else y
