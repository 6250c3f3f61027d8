"""Depthwise convolutions, of whose stationary tiles most numbers are zero."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from tests.codegen.test_fold_rows import Convolutions
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run


def network(channels: int, windows: Sequence[tuple[int, int]], side: int = 9) -> onnx.ModelProto:
    """A depthwise convolution with each of the windows, behind one of 1 x 1."""
    net, x = Convolutions(), "x"
    for window in windows:
        x = net.op("Relu", net.conv(x, channels, channels, (1, 1), 0))
        x = net.conv(x, 1, channels, window, window[0] // 2, group=channels)
    return make_model(net.nodes, {"x": (1, channels, side, side)}, [x], net.weights)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("channels", "windows"),
    [
        (320, [(3, 3)] * 2),  # 64 channels beside two tiles of 128
        (200, [(3, 3)]),
        (256, [(5, 3), (7, 7), (2, 2)]),
        (128, [(1, 9), (9, 9)]),
    ],
    ids=str,
)
def test_as_onnxruntime(chip: str, channels: int, windows: Sequence[tuple[int, int]]) -> None:
    model = network(channels, windows)
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")
    for name, exact in case.exact.items():
        assert relative_error(found[name], exact) < case.bounds[name]


def test_a_weight_that_is_infinite_stays_with_its_channel() -> None:
    model = network(128, [(5, 5)] * 4)
    (last,) = [w for w in model.graph.initializer if w.name == model.graph.node[-1].input[1]]
    weights = onnx.numpy_helper.to_array(last).copy()
    weights[5, 0, 2, 2] = np.inf
    last.CopyFrom(onnx.numpy_helper.from_array(weights, last.name))
    compiled = compile_model(model, "neuron/inf2")
    (found,) = run(compiled, random_inputs(model)).values()
    assert not np.isfinite(found[0, 5]).all()
    assert np.isfinite(np.delete(found, 5, axis=1)).all()
