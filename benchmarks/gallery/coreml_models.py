"""MobileNet as a CoreML file with random weights, and the same network in torch."""

from collections.abc import Iterator
from typing import Any

import numpy as np

SIZE, CLASSES = 224, 1000
_BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def _weights() -> Iterator[tuple[str, np.ndarray, np.ndarray, int, int]]:
    """Name, weights [out, in, height, width], bias, stride and groups of each convolution."""
    rng = np.random.default_rng(9)

    def made(name: str, shape: tuple[int, ...], stride: int = 1, groups: int = 1) -> Any:
        weights = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        return name, weights.astype("float32"), rng.standard_normal(shape[0]).astype("float32") * 0.1, stride, groups

    yield made("conv1", (32, 3, 3, 3), 2)
    before = 32
    for number, (channels, stride) in enumerate(_BLOCKS, 1):
        yield made(f"conv{number}_dw", (before, 1, 3, 3), stride, before)
        yield made(f"conv{number}_pw", (channels, before, 1, 1))
        before = channels
    yield made("fc", (CLASSES, before, 1, 1))


def mobilenet() -> bytes:
    """The file."""
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder

    builder = NeuralNetworkBuilder([("image", datatypes.Array(3, SIZE, SIZE))], [("classes", datatypes.Array(CLASSES))])
    last = "image"
    for name, weights, bias, stride, groups in _weights():
        if name == "fc":
            builder.add_pooling("pool", 7, 7, 1, 1, "AVERAGE", "VALID", last, "pool", is_global=True)
            last = "pool"
        channels, depth, height, width = weights.shape
        builder.add_convolution(
            name, depth, channels, height, width, stride, stride, "same", groups, weights.transpose(2, 3, 1, 0), bias,
            True, input_name=last, output_name=name,
        )  # fmt: skip
        last = name
        if name != "fc":
            builder.add_activation(f"{name}_relu", "RELU", last, f"{name}_relu")
            last = f"{name}_relu"
    builder.add_softmax("softmax", last, "classes")
    return bytes(builder.spec.SerializeToString())


def by_torch(image: np.ndarray) -> np.ndarray:
    """What the network makes of an image, by torch."""
    import torch
    import torch.nn.functional as nn

    x = torch.from_numpy(image)
    for name, weights, bias, stride, groups in _weights():
        if name == "fc":
            x = x.mean((2, 3), keepdim=True)
        size, kernel = x.shape[2], weights.shape[2]
        pad = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        x = nn.pad(x, (pad // 2, pad - pad // 2) * 2)
        x = nn.conv2d(x, torch.from_numpy(weights), torch.from_numpy(bias), stride, groups=groups)
        x = x if name == "fc" else x.relu()
    return x.softmax(1).numpy()
