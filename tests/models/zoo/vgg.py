"""VGG-16, and its convolutions as the base of other networks."""

import onnx

from tests.models.zoo.layers import activate, conv, dense, max_pool
from tests.models.zoo.network import Network

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # channels, convolutions


def vgg16(size: int = 224) -> onnx.ModelProto:
    net = Network("vgg16", image=(1, 3, size, size))
    x = "image"
    for channels, count in STAGES:
        x = max_pool(net, stage(net, x, channels, count), 2, 2)
    x = net.op("Flatten", x)
    for width in (4096, 4096):
        x = activate(net, dense(net, x, width), "relu")
    return net.model(net.op("Softmax", dense(net, x, 1000, gain=1.0), axis=1))


def stage(net: Network, x: str, channels: int, count: int) -> str:
    """Rectified 3x3 convolutions."""
    for _ in range(count):
        x = activate(net, conv(net, x, channels, 3), "relu")
    return x
