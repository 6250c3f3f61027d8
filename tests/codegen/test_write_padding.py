"""Squares of pixels that begin in the padding: what computes the image writes them whole; then padding is filled."""

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check, kernels_of
from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.schedule.kernel import Contraction, Kernel


def first_layers(
    channels: int = 32, window: int = 3, stride: int = 2, batch: int = 1, also: bool = False, rows: int = 64
) -> onnx.ModelProto:
    """A first layer, whose biases make its padding other than zero if it is not filled, and a depthwise layer."""
    net = Convolutions()
    x = net.op("Sigmoid", net.conv("x", CHANNELS, channels, (window, window), window // 2, strides=(stride, stride)))
    y = net.op("Relu", net.conv(x, 1, channels, group=channels))
    y = net.op("Add", x, y) if also else y
    return net.model(net.conv(y, channels, 128, strides=(4, 4)), rows=rows, batch=batch, columns=96)


def depthwise_layer(model: onnx.ModelProto, chip: str = "inf2") -> Kernel:
    return [kernel for kernel in kernels_of(model, chip) if isinstance(kernel.root, Contraction)][1]


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("channels", "window", "stride"), [(32, 3, 2), (32, 5, 2), (32, 3, 1), (64, 3, 2), (96, 3, 2)])
def test_as_onnxruntime(channels: int, window: int, stride: int, chip: str) -> None:
    check(first_layers(channels, window, stride), chip)


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_batches(mode: str) -> None:
    check(first_layers(batch=3), "inf2", mode)


def test_a_window_meets_4_squares_that_begin_in_the_padding() -> None:
    model = first_layers()
    layer = depthwise_layer(model)
    assert isinstance(layer.root, Contraction)
    assert layer.root.data.shape == (1, 128, 17, 25)  # of 32 x 48 pixels, one of padding on each side
    assert layer.root.weights.shape == (128, 2, 2, 128)
    assert np.count_nonzero(layer.root.weights) == 4 * 32 * 9
    kernels = kernels_of(model)
    writers = [kernel for kernel in kernels if kernel.out.name == layer.root.data.name]
    assert not is_fill(writers[0])  # it writes all of the squares
    filled = {tuple(part.span for part in kernel.out_maps[1:]) for kernel in writers[1:]}
    rows, columns, first, last = (0, 16), (0, 24), (0, 0), (16, 16)
    assert filled == {
        ((0, 31), first, columns), ((64, 95), first, columns), ((32, 63), last, columns), ((96, 127), last, columns),
        ((0, 63), rows, (0, 0)), ((64, 127), rows, (24, 24)),
    }  # fmt: skip


def test_what_others_read_too_begins_beside_its_padding() -> None:
    model = first_layers(also=True)
    layer = depthwise_layer(model)
    assert isinstance(layer.root, Contraction)
    assert layer.root.weights.shape[1:-1] != (2, 2)
    check(model, "inf2")


def test_an_odd_number_of_rows_stays() -> None:
    model = first_layers(rows=66)
    layer = depthwise_layer(model)
    assert isinstance(layer.root, Contraction)
    assert layer.root.weights.shape[1:-1] != (2, 2)
    check(model, "inf2")
