"""A first layer and a depthwise one behind it, whose padding is filled and lies on partitions with pixels."""

import onnx
import pytest

from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check


def first_layers(
    channels: int = 32, window: int = 3, stride: int = 2, batch: int = 1, also: bool = False, rows: int = 64
) -> onnx.ModelProto:
    """A first layer, whose biases make its padding other than zero if it is not filled, and a depthwise layer."""
    net = Convolutions()
    x = net.op("Sigmoid", net.conv("x", CHANNELS, channels, (window, window), window // 2, strides=(stride, stride)))
    y = net.op("Relu", net.conv(x, 1, channels, group=channels))
    y = net.op("Add", x, y) if also else y
    return net.model(net.conv(y, channels, 128, strides=(4, 4)), rows=rows, batch=batch, columns=96)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("channels", "window", "stride"), [(32, 3, 2), (32, 5, 2), (32, 3, 1), (64, 3, 2), (96, 3, 2)])
def test_as_onnxruntime(channels: int, window: int, stride: int, chip: str) -> None:
    check(first_layers(channels, window, stride), chip)


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_batches(mode: str) -> None:
    check(first_layers(batch=3), "inf2", mode)


@pytest.mark.parametrize("changes", [{"also": True}, {"rows": 66}], ids=str)
def test_what_others_read_and_odd_numbers_of_rows(changes: dict[str, int]) -> None:
    check(first_layers(**changes), "inf2")
