"""ResNet-152: bottlenecks on a residual stream."""

import onnx

from tests.models.zoo.layers import activate, classifier, max_pool, unit
from tests.models.zoo.network import Network

_BRANCH_GAIN = 0.3  # of what a block adds, so that the sum of many does not grow
_STAGES = ((64, 3, 1), (128, 8, 2), (256, 36, 2), (512, 3, 2))  # width, blocks, first stride


def resnet152(size: int = 224) -> onnx.ModelProto:
    net = Network("resnet152", image=(1, 3, size, size))
    x = max_pool(net, unit(net, "image", 64, 7, 2), 3, 2, 1)
    for width, blocks, stride in _STAGES:
        for block in range(blocks):
            x = _bottleneck(net, x, width, stride if block == 0 else 1)
    return net.model(classifier(net, x))


def _bottleneck(net: Network, x: str, width: int, stride: int) -> str:
    y = unit(net, unit(net, x, width, 1), width, 3, stride)
    y = unit(net, y, 4 * width, 1, function="linear", gain=_BRANCH_GAIN)
    if net.shape(x) != net.shape(y):
        x = unit(net, x, 4 * width, 1, stride, "linear")
    return activate(net, net.op("Add", x, y), "relu")
