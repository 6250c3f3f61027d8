"""The roofline: multiply-accumulates and bytes as the model has them, counted here by hand."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import helper

import tvm_neuron
from tests.codegen.transformers import Encoder
from tests.onnx_models import make_model
from tvm_neuron import hw, neff, relay, runtime
from tvm_neuron.build import BuildOptions


@dataclass(frozen=True)
class Counted:
    """A model and what it takes: multiply-accumulates, values of weights, values of inputs and outputs."""

    model: onnx.ModelProto
    macs: int
    weights: int
    crossing: int


def _conv(
    op: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], macs: int, **attributes: object
) -> Counted:
    """One operator with random weights, from `x` to `y`."""
    weights = np.random.default_rng(len(w)).standard_normal(w).astype(np.float32)
    node = helper.make_node(op, ["x", "w"], ["y"], name="conv", **attributes)
    model = make_model([node], {"x": x}, ["y"], {"w": weights})
    assert tuple(d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim) == y
    return Counted(model, macs, weights.size, int(np.prod(x) + np.prod(y)))


def _words() -> Counted:
    """Rows of a table at positions that are inputs, times a matrix; only the rows looked up cross, in float32."""
    table, w = (np.random.default_rng(n).standard_normal((n, 256)).astype(np.float32) for n in (1000, 256))
    nodes = [helper.make_node("Gather", ["table", "x"], ["rows"]), helper.make_node("MatMul", ["rows", "w"], ["y"])]
    model = make_model(nodes, {"x": (64,)}, ["y"], {"table": table, "w": w}, dtype=onnx.TensorProto.INT64)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return Counted(model, 64 * w.size, w.size, 64 + 2 * 64 * 256)


def _encoder() -> Counted:
    """Four dense layers of the attention, two of four times the width, and heads whose scores and sums are products."""
    hidden, rows = 256, 64
    dense = (4 + 2 * 4) * hidden * hidden
    encoder = Encoder(hidden=hidden, heads=4, rows=rows)
    return Counted(encoder.model(), dense * rows + 2 * rows * rows * hidden, dense, 2 * hidden * rows)


def _rows_side_by_side() -> Counted:
    """Few output channels: weights for several rows at once, each there as often as there are rows."""
    return _conv("Conv", (1, 64, 32, 32), (32, 64, 3, 3), (1, 32, 32, 32), 32 * 64 * 9 * 32 * 32, pads=[1] * 4)


def _rows_folded() -> Counted:
    """A window over few channels, whose rows lie on the partitions side by side: again each weight several times."""
    rng, rows, depths = np.random.default_rng(3), 32, (16, 32, 32)
    weights = {f"w{n}": rng.standard_normal((32, depth, 3, 3)).astype(np.float32) for n, depth in enumerate(depths)}
    nodes = [
        helper.make_node("Conv", [x, w], [y], y, pads=[1] * 4, strides=[stride] * 2)
        for x, w, y, stride in (("x", "w0", "a", 1), ("a", "w1", "b", 1), ("b", "w2", "y", 2))
    ]
    model = make_model(nodes, {"x": (1, 16, rows, rows)}, ["y"], weights)
    per_element = weights["w0"].size + weights["w1"].size + weights["w2"].size // 4
    values = sum(w.size for w in weights.values())
    return Counted(model, per_element * rows * rows, values, (16 + 32 // 4) * rows * rows)


CASES = {
    "rows side by side": _rows_side_by_side,
    "rows folded": _rows_folded,
    "first layer, packed with zeros": lambda: _conv(
        "Conv", (1, 3, 64, 64), (64, 3, 7, 7), (1, 64, 32, 32), 64 * 3 * 49 * 32 * 32, strides=[2, 2], pads=[3] * 4
    ),
    "depthwise, diagonal matrices": lambda: _conv(
        "Conv", (1, 256, 14, 14), (256, 1, 3, 3), (1, 256, 14, 14), 256 * 9 * 14 * 14, group=256, pads=[1] * 4
    ),
    "groups, blocks on a diagonal": lambda: _conv(
        "Conv", (1, 256, 14, 14), (256, 8, 3, 3), (1, 256, 14, 14), 256 * 8 * 9 * 14 * 14, group=32, pads=[1] * 4
    ),
    "transposed, zeros between the data": lambda: _conv(
        "ConvTranspose", (1, 64, 16, 16), (64, 32, 2, 2), (1, 32, 32, 32), 64 * 32 * 4 * 16 * 16, strides=[2, 2]
    ),
    "words, looked up": _words,
    "encoder, sums by the array": _encoder,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_only_what_the_model_asks_for_counts(name: str, chip: str) -> None:
    counted, device = CASES[name](), hw.load_device(chip)
    mod, params = relay.frontend.from_onnx(counted.model)
    report = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
    assert report.macs == counted.macs
    # the encoder also has biases, norms and a mask
    assert report.roofline_us == pytest.approx(_bound_us(counted, counted.weights, device), rel=0.02)
    assert report.latency_us > report.roofline_us
    assert report.pe_utilisation == pytest.approx(1e6 * counted.macs / device.peak_macs_per_second / report.latency_us)


@pytest.mark.parametrize("name", ["rows side by side", "rows folded", "depthwise, diagonal matrices"])
def test_weights_that_stay_in_sbuf_are_not_moved(name: str) -> None:
    counted, device = CASES[name](), hw.load_device("inf1")
    mod, params = relay.frontend.from_onnx(counted.model)
    report = tvm_neuron.report(relay.build(mod, params=params, options=BuildOptions(static_weights=True)))
    assert report.macs == counted.macs
    assert report.roofline_us == pytest.approx(_bound_us(counted, 0, device), rel=0.02)


def test_the_file_says_how_often_values_of_weights_occur() -> None:
    mod, params = relay.frontend.from_onnx(_rows_folded().model)
    (data,) = runtime.neffs(relay.build(mod, target="neuron/inf1", params=params)).values()
    found = neff.read(data).repeats
    assert found == {"a.weights": 2, "b.weights": 2}  # the last has stride 2: a fold of more rows would not suit it


def _bound_us(counted: Counted, weights: int, device: hw.Device) -> float:
    """Of the model with so many values of weights to bring: bfloat16 for these and float32 for all others."""
    by_bytes = (2 * weights + 4 * counted.crossing) / device.dram_bytes_per_second
    return 1e6 * max(by_bytes, counted.macs / device.peak_macs_per_second)
