"""interlaced: what phases of a convolution compute in turn lies on the partitions side by side, as other rows do."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.steps import without

NODE = helper.make_node


def decoder(
    channels: int, size: int, outputs: int, kernel: int, stride: int, is_residual: bool = False, spatial: int = 2
) -> onnx.ModelProto:
    """A transposed convolution between others of few channels, and what is added to its result."""
    rng = np.random.default_rng((channels, size, kernel))
    pad = -((stride - kernel) // 2)  # so that an image has as many pixels as the stride says
    more = 2 * pad + stride - kernel
    ones = [1] * 2 * spatial

    def weight(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    window = [3] * spatial
    weights = {
        "w0": weight(channels, 3, *window), "b": weight(outputs, 1),
        "w1": weight(channels, outputs, *[kernel] * spatial),
        "w2": weight(outputs, outputs, *window), "w3": weight(outputs, 3, *[1] * spatial),
        "w4": weight(outputs, outputs, *window),
    }  # fmt: skip
    weights["b"] = weights["b"].ravel()
    strides, pads, out = [stride] * spatial, [pad] * 2 * spatial, [more] * spatial
    nodes = [
        NODE("Conv", ["x", "w0"], ["a"], pads=ones),
        NODE("Relu", ["a"], ["r"]),
        NODE("ConvTranspose", ["r", "w1", "b"], ["c"], strides=strides, pads=pads, output_padding=out),
        NODE("LeakyRelu", ["c"], ["d"], alpha=0.2),
        NODE("Conv", ["d", "w2"], ["e"], pads=ones),
        NODE("Relu", ["e"], ["f"]),
        NODE("Conv", ["f", "w4"], ["g"], pads=ones),
    ]
    inputs = {"x": (1, 3, *[size] * spatial)}
    if is_residual:
        inputs["z"] = (1, 3, *[size * stride] * spatial)
        nodes.insert(0, NODE("Conv", ["z", "w3"], ["s"]))
        nodes[4] = NODE("LeakyRelu", ["c"], ["c1"], alpha=0.2)
        nodes.insert(5, NODE("Add", ["c1", "s"], ["d"]))
    else:
        del weights["w3"]
    last = NODE("ReduceMean", ["g"], ["y"], axes=[1], keepdims=1)
    return make_model([*nodes, last], inputs, ["y"], weights, opset=13)


def _check(model: onnx.ModelProto, chip: str) -> None:
    rng = np.random.default_rng(1)
    x = {
        value.name: rng.standard_normal([d.dim_value for d in value.type.tensor_type.shape.dim]).astype(np.float32)
        for value in model.graph.input
    }
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, x)
    found = run(compile_model(model, f"neuron/{chip}"), x, "strict")["y"]
    # Four layers, each of whose operands are rounded to 2^-8 of their size.
    np.testing.assert_allclose(found, wanted, atol=0.02 * np.abs(wanted).max())


@settings(max_examples=12, deadline=None)
@given(
    channels=st.sampled_from([8, 16, 24]), size=st.sampled_from([8, 16, 20]), outputs=st.sampled_from([4, 8, 16, 32]),
    window=st.sampled_from([(2, 2), (3, 2), (4, 2), (3, 3), (5, 3), (4, 4), (8, 4)]), is_residual=st.booleans(),
)  # fmt: skip
@example(channels=16, size=16, outputs=16, window=(4, 2), is_residual=False)
@example(channels=8, size=16, outputs=8, window=(8, 4), is_residual=True)
@example(channels=16, size=20, outputs=16, window=(3, 2), is_residual=True)
def test_results_are_right(channels: int, size: int, outputs: int, window: tuple[int, int], is_residual: bool) -> None:
    _check(decoder(channels, size, outputs, *window, is_residual), "inf2")


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    "model",
    [
        decoder(32, 64, 16, 4, 2),
        decoder(32, 32, 32, 4, 2, is_residual=True),
        decoder(64, 2048, 16, 8, 4, spatial=1),
    ],
)
def test_folds_are_worth_it(model: onnx.ModelProto, chip: str) -> None:
    def latency_us() -> float:
        return tvm_neuron.report(tvm_neuron.compile(model, target=f"neuron/{chip}")).latency_us

    found = latency_us()
    with without("fold_rows"):
        assert found < latency_us()
    _check(model, chip)


def generator(outputs: int, size: int, last: str, batch: int = 1) -> onnx.ModelProto:
    """Its last layer makes an image of few channels, which is an output."""
    rng = np.random.default_rng((outputs, size))
    shape = (24, outputs, 4, 4) if last == "ConvTranspose" else (outputs, 24, 3, 3)
    weights = {
        "w0": (rng.standard_normal((24, 8, 3, 3)) / 8).astype(np.float32),
        "w1": (rng.standard_normal(shape) / 12).astype(np.float32),
        "twice": np.array([1, 1, 2, 2], np.float32),
    }
    if last == "ConvTranspose":
        del weights["twice"]
        layers = [NODE("ConvTranspose", ["r", "w1"], ["c"], strides=[2, 2], pads=[1] * 4)]
    else:
        layers = [NODE("Resize", ["r", "", "twice"], ["u"], mode="nearest", coordinate_transformation_mode="asymmetric",
                       nearest_mode="floor"), NODE("Conv", ["u", "w1"], ["c"], pads=[1] * 4)]  # fmt: skip
    nodes = [NODE("Conv", ["x", "w0"], ["a"], pads=[1] * 4), NODE("Relu", ["a"], ["r"]), *layers]
    return make_model([*nodes, NODE("Tanh", ["c"], ["y"])], {"x": (batch, 8, size, size)}, ["y"], weights)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("last", ["ConvTranspose", "Conv"])
@pytest.mark.parametrize(("outputs", "size", "batch"), [(3, 32, 1), (1, 16, 2), (5, 20, 1)])
def test_rows_of_an_output_are_stored_from_where_they_lie(
    outputs: int, size: int, batch: int, last: str, chip: str
) -> None:
    _check(generator(outputs, size, last, batch), chip)


@pytest.mark.parametrize("last", ["ConvTranspose", "Conv"])
def test_a_last_layer_of_few_channels_is_folded(last: str) -> None:
    model = generator(3, 64, last)

    def latency_us() -> float:
        return tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2")).latency_us

    found = latency_us()
    with without("fold_rows"):
        assert found < 0.7 * latency_us()
