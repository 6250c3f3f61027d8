"""SSD-300: VGG-16, smaller and smaller maps, boxes relative to priors on each."""

import itertools

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.models.zoo.detection import channels_last, corners, part, suppress, times
from tests.models.zoo.layers import activate, concat, conv, max_pool
from tests.models.zoo.network import Network
from tests.models.zoo.vgg import STAGES, stage

_CLASSES = 21
_RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))
_SIZES = (30, 60, 111, 162, 213, 264, 315)  # of the priors, in pixels of 300


def ssd300(size: int = 300) -> onnx.ModelProto:
    net = Network("ssd300", image=(1, 3, size, size))
    maps = _maps(net, "image")
    offsets, logits = [], []
    for x, ratios in zip(maps, _RATIOS, strict=True):
        anchors = 2 + 2 * len(ratios)
        offsets.append(channels_last(net, conv(net, x, 4 * anchors, 3), 4))
        logits.append(channels_last(net, conv(net, x, _CLASSES * anchors, 3), _CLASSES))
    scores = net.op("Softmax", concat(net, *logits), axis=2)
    boxes = _decode(net, concat(net, *offsets), _priors([net.shape(x)[2] for x in maps]))
    return net.model(boxes, *suppress(net, boxes, part(net, scores, 1, _CLASSES)))


def _maps(net: Network, x: str) -> list[str]:
    for channels, count in STAGES[:3]:
        x = max_pool(net, stage(net, x, channels, count), 2, 2, ceil=True)
    fourth = stage(net, x, *STAGES[3])
    x = max_pool(net, stage(net, max_pool(net, fourth, 2, 2), *STAGES[4]), 3, 1, 1)
    x = activate(net, conv(net, x, 1024, 3, pad=6, dilation=6), "relu")
    maps = [_normalised(net, fourth), activate(net, conv(net, x, 1024, 1), "relu")]
    for channels, stride in ((512, 2), (256, 2), (256, 1), (256, 1)):
        x = activate(net, conv(net, maps[-1], channels // 2, 1), "relu")
        pad = 1 if stride == 2 else 0
        maps.append(activate(net, conv(net, x, channels, 3, stride, pad=pad), "relu"))
    return maps


def _normalised(net: Network, x: str) -> str:
    """Each position's channels divided by their L2 norm, times a learnt scale."""
    axes, least = net.constant(np.array([1]), "axes"), net.constant(np.float32(1e-10), "least")
    normal = net.op("Div", x, net.op("Add", net.op("ReduceL2", x, axes), least))
    scale = net.rng.uniform(15, 25, (1, net.shape(x)[1], 1, 1)).astype(np.float32)
    return net.op("Mul", normal, net.constant(scale, "scale"))


def _priors(sizes: list[int]) -> NDArray:
    """[N, 4]: centre and size of every prior box, in parts of the image."""
    boxes = []
    for level, (cells, ratios) in enumerate(zip(sizes, _RATIOS, strict=True)):
        small, next_small = _SIZES[level] / 300, _SIZES[level + 1] / 300
        shapes = [(small, small), ((small * next_small) ** 0.5,) * 2]
        shapes += [(small * r**0.5, small / r**0.5) for ratio in ratios for r in (ratio, 1 / ratio)]
        centres = [((j + 0.5) / cells, (i + 0.5) / cells) for i, j in itertools.product(range(cells), repeat=2)]
        boxes += [(*centre, *shape) for centre in centres for shape in shapes]
    return np.array(boxes, np.float32)


def _decode(net: Network, offsets: str, priors: NDArray) -> str:
    centres, sizes = net.constant(priors[None, :, :2], "priors"), net.constant(priors[None, :, 2:], "priors")
    moved = net.op("Mul", times(net, part(net, offsets, 0, 2), 0.1), sizes)
    grown = net.op("Exp", times(net, part(net, offsets, 2, 4), 0.2))
    return corners(net, net.op("Add", centres, moved), net.op("Mul", sizes, grown))
