"""Inception-v3: branches with factored convolutions, concatenated."""

import onnx

from tests.models.zoo.layers import average_pool, classifier, concat, max_pool, unit
from tests.models.zoo.network import Network


def inception_v3(size: int = 299) -> onnx.ModelProto:
    net = Network("inception_v3", image=(1, 3, size, size))
    x = unit(net, unit(net, "image", 32, 3, 2, pad=0), 32, 3, pad=0)
    x = max_pool(net, unit(net, x, 64, 3), 3, 2)
    x = max_pool(net, unit(net, unit(net, x, 80, 1), 192, 3, pad=0), 3, 2)
    for pooled in (32, 64, 64):
        x = _five_wide(net, x, pooled)
    x = concat(net, unit(net, x, 384, 3, 2, pad=0), _reduced(net, unit(net, x, 64, 1), 96), max_pool(net, x, 3, 2))
    for width in (128, 160, 160, 192):
        x = _seven_wide(net, x, width)
    y = unit(net, unit(net, unit(net, x, 192, 1), 192, (1, 7)), 192, (7, 1))
    left = unit(net, unit(net, x, 192, 1), 320, 3, 2, pad=0)
    x = concat(net, left, unit(net, y, 192, 3, 2, pad=0), max_pool(net, x, 3, 2))
    for _ in range(2):
        x = _forked(net, x)
    return net.model(classifier(net, x))


def _reduced(net: Network, x: str, channels: int) -> str:
    return unit(net, unit(net, x, channels, 3), channels, 3, 2, pad=0)


def _five_wide(net: Network, x: str, pooled: int) -> str:
    five = unit(net, unit(net, x, 48, 1), 64, 5)
    three = unit(net, unit(net, unit(net, x, 64, 1), 96, 3), 96, 3)
    return concat(net, unit(net, x, 64, 1), five, three, unit(net, average_pool(net, x, 3, pad=1), pooled, 1))


def _seven_wide(net: Network, x: str, width: int) -> str:
    once = unit(net, unit(net, unit(net, x, width, 1), width, (1, 7)), 192, (7, 1))
    twice = unit(net, x, width, 1)
    for channels, kernel in ((width, (7, 1)), (width, (1, 7)), (width, (7, 1)), (192, (1, 7))):
        twice = unit(net, twice, channels, kernel)
    return concat(net, unit(net, x, 192, 1), once, twice, unit(net, average_pool(net, x, 3, pad=1), 192, 1))


def _forked(net: Network, x: str) -> str:
    three = unit(net, x, 384, 1)
    double = unit(net, unit(net, x, 448, 1), 384, 3)
    forks = [unit(net, y, 384, kernel) for y in (three, double) for kernel in ((1, 3), (3, 1))]
    return concat(net, unit(net, x, 320, 1), *forks, unit(net, average_pool(net, x, 3, pad=1), 192, 1))
