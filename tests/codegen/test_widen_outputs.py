"""Convolutions of few output channels compute several rows at once, whose weights lie side by side."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import Convolutions, kernels_of
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk
from tvm_neuron.schedule.kernel import Contraction


def model_of(
    channels: int, rows: int = 96, batch: int = 1, depth: int = 80, **window: Sequence[int]
) -> onnx.ModelProto:
    """A convolution that reads a sum, so that its data are not what comes in."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 16, depth, (1, 1), 0))
    return net.model(net.op("Relu", net.conv(x, depth, channels, **window)), rows, batch)


def sides(model: onnx.ModelProto, chip: str = "inf2") -> list[int]:
    """How many rows each convolution computes at once."""
    roots = [kernel.root for kernel in kernels_of(model, chip)]
    return [root.side.extent if root.side else 1 for root in roots if isinstance(root, Contraction)]


@pytest.mark.parametrize(
    ("channels", "chip", "count"),
    [(32, "inf2", 4), (64, "inf2", 2), (96, "inf2", 1), (32, "inf1", 2), (24, "inf2", 4), (3, "inf2", 4)],
)
def test_as_many_rows_as_there_are_columns_for(channels: int, chip: str, count: int) -> None:
    assert sides(model_of(channels, 480), chip) == [1, count]


@pytest.mark.parametrize(
    ("channels", "batch", "window"),
    [
        (32, 1, {}),
        (64, 3, {}),
        (32, 1, {"kernel": (5, 3), "pads": 2}),
        (32, 1, {"dilations": (2, 1), "pads": 2}),
        (32, 2, {"strides": (2, 1)}),
        (32, 1, {"kernel": (5, 2), "pads": 2, "strides": (2, 1)}),
        (3, 1, {}),
        (40, 2, {"kernel": (5, 3), "pads": 2}),
    ],
    ids=str,
)
def test_as_onnxruntime(channels: int, batch: int, window: dict[str, Sequence[int]]) -> None:
    model = model_of(channels, 96, batch, **window)
    assert sides(model)[1] > 1
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, "neuron/inf2"), case.inputs, "strict")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def agrees(model: onnx.ModelProto, chip: str) -> None:
    """The one output is within its bound of onnxruntime's."""
    case = Case(model, random_inputs(model))
    for found in run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict").values():
        (exact,) = case.exact.values()
        assert relative_error(found, exact) < max(case.bounds.values())


def residual(channels: int = 24) -> onnx.ModelProto:
    """A sum with what another convolution has made, on the way out."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 16, 80, (1, 1), 0))
    beside = net.op("Relu", net.conv(x, 80, channels, (1, 1), 0))
    return net.model(net.op("Relu", net.op("Add", net.conv(x, 80, channels), beside)), rows=96)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_a_sum_on_the_way_out(chip: str) -> None:
    model = residual()
    assert max(sides(model, chip)) > 1
    agrees(model, chip)


def behind(before: int, channels: int, is_sum: bool) -> onnx.ModelProto:
    """What is computed goes behind `before` channels, where so many may not begin, or do not end in the same chunk."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 16, 96, (1, 1), 0))
    first = net.op("Relu", net.conv(x, 96, before, (1, 1), 0))
    made = net.conv(x, 96, channels)
    if is_sum:
        made = net.op("Add", made, net.op("Relu", net.conv(x, 96, channels, (1, 1), 0)))
    return net.model(net.op("Relu", net.op("Concat", first, net.op("Relu", made), axis=1)), rows=96)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("before", "channels", "is_sum"),
    [(96, 40, False), (32, 64, False), (96, 64, False), (96, 40, True), (32, 64, True), (64, 64, True), (96, 24, True)],
)
def test_behind_other_channels(before: int, channels: int, is_sum: bool, chip: str) -> None:
    agrees(behind(before, channels, is_sum), chip)


def joined() -> onnx.ModelProto:
    """What is computed goes behind other channels, as in a dense block."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 16, 96, (1, 1), 0))
    for _ in range(3):
        depth = 96 + 32 * (len(net.nodes) // 3)
        x = net.op("Concat", x, net.op("Relu", net.conv(x, depth, 32)), axis=1)
    return net.model(x, rows=96)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_parts_of_what_is_joined(chip: str) -> None:
    model = joined()
    assert max(sides(model, chip)) > 1
    agrees(model, chip)


@pytest.mark.slow
@pytest.mark.parametrize("kib", [24, 16, 14])
def test_in_tiles_of_rows(kib: int, tmp_path: Path) -> None:
    """Tiles make whole groups of the rows that are computed at once."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", 16, 48))
    x = net.op("Relu", net.conv(x, 48, 32, (5, 3), 2))
    model = net.model(net.conv(net.op("MaxPool", x, kernel_shape=[3, 3]), 32, 8), rows=96)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, shrunk(tmp_path, "inf1", kib)), case.inputs, "strict")
    for name, exact in case.exact.items():
        assert np.isfinite(found[name]).all()
        assert relative_error(found[name], exact) < case.bounds[name]
