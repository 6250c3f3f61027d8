"""YOLOv3 (Darknet-53) and YOLOv4 (CSPDarknet-53, SPP, PANet), with box decoding and suppression in the graph."""

import numpy as np
import onnx

from tests.models.zoo.detection import channels_last, corners, part, suppress, times
from tests.models.zoo.layers import concat, conv, max_pool, unit, upsample
from tests.models.zoo.network import Network

_CLASSES = 80
_ANCHORS = (
    ((10, 13), (16, 30), (33, 23)),
    ((30, 61), (62, 45), (59, 119)),
    ((116, 90), (156, 198), (373, 326)),
)  # pixels; for strides 8, 16, 32
_STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))  # channels, residual blocks
_BRANCH_GAIN = 0.3


def yolov3(size: int = 416) -> onnx.ModelProto:
    net = Network("yolov3", image=(1, 3, size, size))
    x, levels = unit(net, "image", 32, 3, function="leaky"), []
    for channels, blocks in _STAGES:
        x = unit(net, x, channels, 3, 2, "leaky")
        for _ in range(blocks):
            x = _residual(net, x, channels // 2, "leaky")
        levels.append(x)
    x, heads = _alternate(net, levels[-1], 512, 5), []
    heads.append(_head(net, x, 1024))
    for width, level in ((256, levels[-2]), (128, levels[-3])):
        up = upsample(net, unit(net, x, width, 1, function="leaky"))
        x = _alternate(net, concat(net, up, level), width, 5)
        heads.append(_head(net, x, 2 * width))
    return _detector(net, heads[::-1])


def yolov4(size: int = 416) -> onnx.ModelProto:
    net = Network("yolov4", image=(1, 3, size, size))
    x, levels = unit(net, "image", 32, 3, function="mish"), []
    for channels, blocks in _STAGES:
        x = _cross_stage(net, unit(net, x, channels, 3, 2, "mish"), channels, blocks)
        levels.append(x)
    x = _alternate(net, levels[-1], 512, 3)
    x = _alternate(net, concat(net, *(max_pool(net, x, k, 1, k // 2) for k in (13, 9, 5)), x), 512, 3)
    down = [x]
    for width, level in ((256, levels[-2]), (128, levels[-3])):
        up = upsample(net, unit(net, down[0], width, 1, function="leaky"))
        down.insert(0, _alternate(net, concat(net, unit(net, level, width, 1, function="leaky"), up), width, 5))
    x, heads = down[0], [_head(net, down[0], 256)]
    for width, level in zip((256, 512), down[1:], strict=True):
        x = _alternate(net, concat(net, unit(net, x, width, 3, 2, "leaky"), level), width, 5)
        heads.append(_head(net, x, 2 * width))
    return _detector(net, heads)


def _residual(net: Network, x: str, width: int, function: str) -> str:
    y = unit(net, unit(net, x, width, 1, function=function), net.shape(x)[1], 3, function=function, gain=_BRANCH_GAIN)
    return net.op("Add", x, y)


def _cross_stage(net: Network, x: str, channels: int, blocks: int) -> str:
    width = channels if blocks == 1 else channels // 2
    past, y = unit(net, x, width, 1, function="mish"), unit(net, x, width, 1, function="mish")
    for _ in range(blocks):
        y = _residual(net, y, channels // 2, "mish")
    return unit(net, concat(net, unit(net, y, width, 1, function="mish"), past), channels, 1, function="mish")


def _alternate(net: Network, x: str, width: int, count: int) -> str:
    for i in range(count):
        x = unit(net, x, width * (1 + i % 2), 1 + 2 * (i % 2), function="leaky")
    return x


def _head(net: Network, x: str, width: int) -> str:
    return conv(net, unit(net, x, width, 3, function="leaky"), 3 * (5 + _CLASSES), 1, gain=0.5)


def _detector(net: Network, heads: list[str]) -> onnx.ModelProto:
    levels = [_decode(net, head, anchors) for head, anchors in zip(heads, _ANCHORS, strict=True)]
    boxes, scores = (concat(net, *parts) for parts in zip(*levels, strict=True))
    return net.model(boxes, *suppress(net, boxes, scores))


def _decode(net: Network, head: str, anchors: tuple[tuple[int, int], ...]) -> tuple[str, str]:
    """Boxes [1, N, 4] in pixels and scores [1, N, classes] of a head [1, 3 * (5 + classes), H, W]."""
    height, width = net.shape(head)[2:]
    stride = net.shape("image")[2] // height
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).reshape(-1, 1, 2)
    cells = np.broadcast_to(grid, (len(grid), len(anchors), 2)).reshape(1, -1, 2).astype(np.float32)
    sizes = np.broadcast_to(np.array(anchors, np.float32), (len(grid), len(anchors), 2)).reshape(1, -1, 2)
    rows = channels_last(net, head, 5 + _CLASSES)
    centres = net.op("Add", net.op("Sigmoid", part(net, rows, 0, 2)), net.constant(cells, "cells"))
    extents = net.op("Mul", net.op("Exp", part(net, rows, 2, 4)), net.constant(sizes, "anchors"))
    likely = net.op("Sigmoid", part(net, rows, 4, 5 + _CLASSES))
    scores = net.op("Mul", part(net, likely, 0, 1), part(net, likely, 1, 1 + _CLASSES))
    return corners(net, times(net, centres, stride), extents), scores
