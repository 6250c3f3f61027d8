"""from_tflite: small networks agree with the same network in NumPy, and what is no TFLite file is told."""

from typing import Any

import numpy as np
import pytest
import tvm

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import ModelError


@pytest.mark.tensorflow
def test_a_float_network_agrees_with_numpy() -> None:
    from benchmarks.gallery.tflite_writer import Writer

    rng = np.random.default_rng(1)
    weights = rng.standard_normal((6, 1, 1, 5)).astype("float32")
    bias = rng.standard_normal(6).astype("float32")
    writer = Writer()
    given, made, result = (writer.tensor(n, (1, 4, 4, c)) for n, c in (("in", 5), ("conv", 6), ("out", 6)))
    values = {"Padding": 0, "StrideW": 1, "StrideH": 1, "FusedActivationFunction": 1}
    inputs = [given, writer.constant("w", weights), writer.constant("b", bias)]
    writer.operator("CONV_2D", "Conv2DOptions", values, inputs, made)
    writer.operator("SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}, [made], result)
    model = writer.finish([given], [result])
    mod, params = relay.frontend.from_tflite(model, {"in": (1, 4, 4, 5)}, {"in": "float32"})
    library = relay.build(mod, "neuron/inf2", params=params)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    x = rng.standard_normal((1, 4, 4, 5)).astype("float32")
    executor.run(**{"in": x})
    kept = np.maximum(x.astype("float64") @ weights[:, 0, 0].T + bias, 0)
    exact = np.exp(kept) / np.exp(kept).sum(-1, keepdims=True)
    # the sums are off by 2**-8 of their terms of size 1 to 4, the softmax passes that on as a relative error
    np.testing.assert_allclose(executor.get_output(0).numpy(), exact, rtol=16 * 2.0**-8)


@pytest.mark.tensorflow
def test_a_converter_of_the_user_takes_the_place_of_ours() -> None:
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    from benchmarks.gallery.tflite_writer import Writer

    class Negative(OperatorConverter):  # type: ignore[misc]
        def convert_softmax(self, op: Any) -> tvm.relax.Expr:
            (given,) = self.get_input_tensors(op)
            return tvm.relax.op.negative(self.get_expr(given.tensor_idx))

    writer = Writer()
    given, result = writer.tensor("in", (2, 9)), writer.tensor("out", (2, 9))
    writer.operator("SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}, [given], result)
    mod, params = relay.frontend.from_tflite(writer.finish([given], [result]), op_converter=Negative)
    executor = relay.graph_executor.GraphModule(relay.build(mod, "neuron/inf2", params=params)["default"](tvm.cpu()))
    x = np.random.default_rng(2).standard_normal((2, 9)).astype("float32")
    executor.run(**{"in": x})
    np.testing.assert_array_equal(executor.get_output(0).numpy(), -x)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"none at all", "these 11 bytes are no TFLite file"),
        (b"\xf0\0\0\0TFL3 and no more", "the file is damaged or not whole: unpack_from"),
        ("model.tflite", "from_tflite takes a tflite.Model or the bytes of a file, got str"),
    ],
)
def test_what_is_no_model(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_tflite(model)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tflite", None)
    with pytest.raises(ModelError, match="from_tflite needs the package 'tflite': pip install tflite"):
        relay.frontend.from_tflite(b"")


@pytest.mark.parametrize("name", ["from_paddle", "from_caffe2"])
def test_importers_that_are_not_here_say_where_to_go(name: str) -> None:
    with pytest.raises(ModelError, match=rf"relay\.frontend\.{name} is not here: .* as ONNX \(.*from_onnx"):
        getattr(relay.frontend, name)(None)
