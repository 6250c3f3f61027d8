"""ResNets: blocks on a residual stream, bottlenecks in all but the smallest."""

import onnx

from tests.models.zoo.layers import activate, classifier, max_pool, unit
from tests.models.zoo.network import Network

_BRANCH_GAIN = 0.3  # of what a block adds, so that the sum of many does not grow
_BLOCKS = {18: (2, 2, 2, 2), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # of each stage, by layers


def resnet152(size: int = 224) -> onnx.ModelProto:
    return resnet(152, size)


def resnet(layers: int, size: int = 224) -> onnx.ModelProto:
    net = Network(f"resnet{layers}", image=(1, 3, size, size))
    x = max_pool(net, unit(net, "image", 64, 7, 2), 3, 2, 1)
    block = _two_convolutions if layers == 18 else _bottleneck
    for stage, blocks in enumerate(_BLOCKS[layers]):
        for number in range(blocks):
            x = block(net, x, 64 << stage, 2 if number == 0 and stage else 1)
    return net.model(classifier(net, x))


def _bottleneck(net: Network, x: str, width: int, stride: int) -> str:
    y = unit(net, unit(net, x, width, 1), width, 3, stride)
    return _added(net, x, unit(net, y, 4 * width, 1, function="linear", gain=_BRANCH_GAIN), stride)


def _two_convolutions(net: Network, x: str, width: int, stride: int) -> str:
    y = unit(net, unit(net, x, width, 3, stride), width, 3, function="linear", gain=_BRANCH_GAIN)
    return _added(net, x, y, stride)


def _added(net: Network, x: str, y: str, stride: int) -> str:
    if net.shape(x) != net.shape(y):
        x = unit(net, x, net.shape(y)[1], 1, stride, "linear")
    return activate(net, net.op("Add", x, y), "relu")
