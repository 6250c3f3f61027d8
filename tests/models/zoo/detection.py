"""What detectors do after their last convolution: boxes from offsets, and non-maximum suppression."""

import numpy as np

from tests.models.zoo.layers import concat
from tests.models.zoo.network import Network


def channels_last(net: Network, x: str, values: int) -> str:
    """[1, A * values, H, W] as [1, H * W * A, values]."""
    _, channels, height, width = net.shape(x)
    target = net.constant(np.array([1, height * width * channels // values, values]), "shape")
    return net.op("Reshape", net.op("Transpose", x, perm=[0, 2, 3, 1]), target)


def part(net: Network, x: str, begin: int, end: int, axis: int = -1) -> str:
    """A slice along one axis."""
    bounds = [net.constant(np.array([number]), "bound") for number in (begin, end, axis)]
    return net.op("Slice", x, *bounds)


def times(net: Network, x: str, factor: float) -> str:
    """A multiple of `x`."""
    return net.op("Mul", x, net.constant(np.float32(factor), "factor"))


def corners(net: Network, centres: str, sizes: str) -> str:
    """[1, N, 4] (x1, y1, x2, y2) of centres and sizes [1, N, 2]."""
    half = times(net, sizes, 0.5)
    return concat(net, net.op("Sub", centres, half), net.op("Add", centres, half), axis=-1)


def suppress(net: Network, boxes: str, scores: str, most: int = 20) -> tuple[str, str]:
    """The scores [1, classes, N] of boxes [1, N, 4], and which are kept: [K, 3] (image, class, box).

    The scores, given as [1, N, classes], are what the suppression reads, so that it can be repeated.
    """
    limits = (
        net.constant(np.array([most]), "most"),
        net.constant(np.array([0.5], np.float32), "overlap"),
        net.constant(np.array([0.3], np.float32), "threshold"),
    )
    by_class = net.op("Transpose", scores, perm=[0, 2, 1])
    return by_class, net.op("NonMaxSuppression", boxes, by_class, *limits)
