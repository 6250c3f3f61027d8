"""Boxes of detectors."""

from math import sqrt

import numpy as np

from tvm_neuron.frontend.mxnet.attributes import Attributes
from tvm_neuron.frontend.mxnet.network import Network
from tvm_neuron.frontend.mxnet.operators.converter import Converter


def _prior(net: Network, at: Attributes, data: str) -> str:
    """Boxes around every position of an image: of all sizes with the first ratio, of the first size with the others."""
    sizes, ratios = at.numbers("sizes", (1,)), at.numbers("ratios", (1,))
    height, width = net.shape(data)[2:]
    steps, offsets = at.numbers("steps", (-1, -1)), at.numbers("offsets", (0.5, 0.5))
    down, right = steps if min(steps) > 0 else (1 / height, 1 / width)
    forms = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    halves = np.array([(size * height / width * sqrt(ratio) / 2, size / sqrt(ratio) / 2) for size, ratio in forms])
    rows, columns = (np.arange(height) + offsets[0]) * down, (np.arange(width) + offsets[1]) * right
    centers = np.stack(np.broadcast_arrays(columns, rows[:, None]), -1)[:, :, None]
    boxes = np.concatenate([centers - halves, centers + halves], -1).reshape(1, -1, 4)
    found = np.clip(boxes, 0, 1) if at.flag("clip") else boxes
    return net.constant(found, net.dtype(data))


CONVERTERS: dict[str, Converter] = {"_contrib_MultiBoxPrior": _prior, "MultiBoxPrior": _prior}
