"""A program of ResNet-50's size and shape, for measuring the model's speed."""

import numpy as np

from tests.sim.convnet import Builder, Image
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import Program

_WEIGHTS_AT = 0
_WEIGHTS_BYTES = 38 << 10


class _Arena:
    """Three places for images, taken in turn."""

    def __init__(self) -> None:
        self.at = [_WEIGHTS_BYTES + place * 14336 for place in range(4)]

    def image(self, place: int, channels: int, size: int, pad: int) -> Image:
        return Image(channels, size, size, pad, self.at[place])


def resnet50() -> Program:
    """53 convolutions, 4.1 GMAC; the stem takes rows of 21 = 3 * 7 channels, the head is left out."""
    builder, arena = Builder(), _Arena()
    x = Image(21, 115, 112, 3, arena.at[0])
    builder.load(x, "input")
    y = arena.image(2, 64, 56, 0)
    builder.conv("stem", x, y, 1, 1, _WEIGHTS_AT)
    x = y
    count = 0
    for blocks, width, size in ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)):
        for block in range(blocks):
            stride = 2 if block == 0 and width != 64 else 1
            places = [place for place in range(4) if arena.at[place] != x.at]
            name = f"conv{count}"
            count += 1
            inner = arena.image(places[0], width, x.height, 1)
            builder.conv(f"{name}a", x, inner, 1, 1, _WEIGHTS_AT)
            middle = arena.image(places[1], width, size, 0)
            builder.conv(f"{name}b", inner, middle, 3, stride, _WEIGHTS_AT)
            residual = x
            if block == 0:
                residual = arena.image(places[2], 4 * width, size, 0)
                builder.conv(f"{name}d", x, residual, 1, stride, _WEIGHTS_AT, relu=False)
                out = arena.image(places[0], 4 * width, size, 0)
            else:
                out = arena.image(places[2], 4 * width, size, 0)
            builder.conv(f"{name}c", middle, out, 1, 1, _WEIGHTS_AT, residual=residual)
            x = out
    builder.store(x, "output")
    return builder.program()


def random_arrays(program: Program, kind: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Random values for all tensors of a kind, scaled so that sums stay small."""
    random = np.random.default_rng(seed)
    return {
        tensor.name: (
            random.standard_normal(tensor.shape) / (tensor.shape[0] ** 0.5 if kind == "weight" else 1)
        ).astype(DTYPES[tensor.dtype])
        for tensor in program.tensors
        if tensor.kind == kind
    }
