"""OpenPose: VGG-19's first layers, then stages that refine part confidences and part affinities."""

import onnx

from tests.models.zoo.layers import activate, concat, conv, max_pool
from tests.models.zoo.network import Network
from tests.models.zoo.vgg import stage

_AFFINITIES, _PARTS, _REFINEMENTS = 38, 19, 5


def openpose(size: int = 184) -> onnx.ModelProto:
    net = Network("openpose", image=(1, 3, size, size))
    x = "image"
    for channels, count in ((64, 2), (128, 2), (256, 4)):
        x = max_pool(net, stage(net, x, channels, count), 2, 2)
    features = stage(net, stage(net, stage(net, x, 512, 2), 256, 1), 128, 1)
    ends = [_branch(net, features, count, (3, 3, 3), 512) for count in (_AFFINITIES, _PARTS)]
    for _ in range(_REFINEMENTS):
        seen = concat(net, *ends, features)
        ends = [_branch(net, seen, count, (7,) * 5, 128) for count in (_AFFINITIES, _PARTS)]
    return net.model(*ends)


def _branch(net: Network, x: str, maps: int, kernels: tuple[int, ...], width: int) -> str:
    for kernel in kernels:
        x = activate(net, conv(net, x, 128, kernel), "relu")
    return conv(net, activate(net, conv(net, x, width, 1), "relu"), maps, 1)
