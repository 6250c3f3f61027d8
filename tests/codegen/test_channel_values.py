"""Squeeze-and-excite beside folded images: sums come out in parts, factors are computed once for each row."""

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check, kernels_of
from tvm_neuron.schedule.kernel import Contraction, Reduction


def excite(net: Convolutions, x: str, channels: int, squeezed: int, single: bool = False) -> str:
    """x times a factor for each channel, computed from the means of all."""
    y = net.op("GlobalAveragePool", x)
    if not single:
        y = net.op("Relu", net.conv(y, channels, squeezed, (1, 1), 0))
        channels, deep = squeezed, channels
    else:
        deep = channels
    return net.op("Mul", x, net.op("Sigmoid", net.conv(y, channels, deep, (1, 1), 0)))


def network(channels: int, single: bool = False, batch: int = 1, also: str = "") -> onnx.ModelProto:
    """A depthwise layer, excited; `also` reads its sums or its factors beside."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, channels, (1, 1), 0))
    x = net.op("Relu", net.conv(x, 1, channels, group=channels))
    x = excite(net, x, channels, 8, single)
    x = net.conv(x, channels, 24, (1, 1), 0)
    if also:
        x = net.op("Add", x, net.conv(net.op("GlobalAveragePool", x), 24, 24, (1, 1), 0))
    return net.model(net.conv(x, 24, 128, strides=(4, 4)), rows=48, batch=batch)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("channels", "single"), [(32, False), (96, False), (144, False), (32, True), (200, False)])
def test_as_onnxruntime(channels: int, single: bool, chip: str) -> None:
    check(network(channels, single), chip)


@pytest.mark.parametrize("batch", [2, 3])
def test_batches(batch: int) -> None:
    check(network(32, batch=batch), "inf2")


def test_sums_that_are_added_to_an_image() -> None:
    check(network(32, also="sums"), "inf2")


def test_sums_in_parts_and_factors_for_each_row() -> None:
    """4 rows of 32 channels lie on the partitions; the first weights add 4 parts up, the last make 4 factors."""
    kernels = kernels_of(network(32))
    sums = next(kernel for kernel in kernels if isinstance(kernel.root, Reduction))
    assert sums.out.shape == (1, 128, 1, 1)
    squeeze, expand = [k.root for k in kernels if isinstance(k.root, Contraction)][2:4]
    assert (squeeze.weights.shape, squeeze.repeats) == ((128, 8), 4)
    assert (expand.weights.shape, expand.repeats) == ((8, 128), 4)
    assert np.array_equal(squeeze.weights[:32], squeeze.weights[96:])


def test_sums_that_the_model_gives_out_are_whole() -> None:
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 32, (1, 1), 0))
    model = net.model(net.op("GlobalAveragePool", x), rows=48)
    sums = next(kernel for kernel in kernels_of(model) if isinstance(kernel.root, Reduction))
    assert sums.out.shape == (1, 32, 1, 1)
    check(model, "inf2")
