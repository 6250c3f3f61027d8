"""Squares that begin in the padding behind a layer of 1 x 1, which computes zeros there from a copy with marks."""

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import CHANNELS, check, kernels_of
from tests.codegen.test_sum_biases import Blocks
from tvm_neuron.schedule.kernel import Contraction, Kernel

COPY = ".copy"


class Wider(Blocks):
    """Networks of blocks of several forms."""

    def after(self, x: str, kind: str) -> str:
        if kind == "Clip":
            return self.clip(x)
        return self.op("Mul", x, self.op("Sigmoid", x)) if kind == "Swish" else self.op(kind, x)


def network(
    channels: int = 24,
    kind: str = "Clip",
    window: int = 3,
    strides: tuple[int, int] = (1, 1),
    first: int = 1,
    rows: int = 48,
    blocks: int = 1,
    batch: int = 1,
    squeeze: bool = False,
    also: bool = False,
    bias: bool = True,
) -> onnx.ModelProto:
    """Blocks of a layer of 1 x 1, one for each channel by itself, and one of few channels, to which data are added."""
    net, wide = Wider(), 6 * channels
    x = net.narrow("x", CHANNELS, channels)
    for _ in range(blocks):
        before = net.conv(x, channels, wide, (first, first), first // 2)
        if not bias:
            net.weights[f"{before}.b"] = np.zeros_like(net.weights[f"{before}.b"])
        before = net.after(before, kind)
        y = net.after(net.conv(before, 1, wide, (window, window), window // 2, group=wide, strides=strides), kind)
        if squeeze:
            mean = net.op("Relu", net.narrow(net.op("GlobalAveragePool", y), wide, 8))
            y = net.op("Mul", y, net.op("Sigmoid", net.narrow(mean, 8, wide)))
        y = net.op("Add", y, before) if also else y
        y = net.narrow(y, wide, channels)
        x = net.op("Add", x, y) if strides == (1, 1) else y
    return net.model(net.clip(net.conv(x, channels, 128, (1, 1), 0, strides=(4, 4))), rows, batch, columns=56)


def copies(model: onnx.ModelProto, chip: str = "inf2") -> list[Kernel]:
    return [kernel for kernel in kernels_of(model, chip) if kernel.out.name.split(".folded")[0].endswith(COPY)]


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, 1),
        ({"blocks": 2}, 2),  # of which the second one's data are the first one's sum
        ({"batch": 2}, 1),
        ({"kind": "Swish"}, 1),
        ({"kind": "Swish", "squeeze": True}, 1),
        ({"kind": "Relu", "channels": 16}, 1),
        ({"bias": False}, 1),
    ],
    ids=str,
)
def test_as_onnxruntime(changes: dict[str, int], layers: int) -> None:
    model = network(**changes)
    assert len(copies(model)) == layers
    check(model, "inf2")


def test_single_steps() -> None:
    check(network(), "inf2", "nest")


def test_on_the_smaller_array() -> None:
    check(network(), "inf1")


def test_the_next_layer_multiplies_4_squares() -> None:
    kernels = kernels_of(network())
    (copy,) = copies(network())
    roots = [kernel.root for kernel in kernels if isinstance(kernel.root, Contraction)]
    wide = next(root for root in roots if root.data.name == copy.out.name)
    layer = roots[roots.index(wide) + 1]
    assert copy.out.shape == (1, 4 * (24 + 3), 25, 29)  # of 48 x 56 pixels, one of padding on each side, with 3 marks
    assert isinstance(copy.root, Contraction)
    assert copy.root.data.shape == (1, 4 * (24 + 3), 26, 30)
    assert copy.root.weights.shape[1:-1] == layer.weights.shape[1:-1] == (2, 2)
    assert np.count_nonzero(copy.root.weights) == 4 * (24 + 3)
    assert layer.data.shape == (1, 4 * 144, 25, 29)
    fills = [kernel for kernel in kernels if kernel.out is layer.data and kernel.root is None]
    assert not fills  # zeros come out where its padding is


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "Sigmoid"},  # which is not 0 of 0
        {"window": 5},
        {"strides": (2, 2)},
        {"first": 3},  # no layer of 1 x 1
        {"also": True},  # others read the image as well
        {"rows": 46, "strides": (1, 2)},
        {"channels": 128},  # no room for marks
    ],
    ids=str,
)
def test_stays(changes: dict[str, int]) -> None:
    model = network(**changes)
    assert not copies(model)
    check(model, "inf2")


def test_an_odd_number_of_rows_stays() -> None:
    model = network(rows=47)
    assert not copies(model)
