"""What is cast on its way to an output is read by others as it was before."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import BuildOptions, relay


def run(model: object, x: np.ndarray) -> list[np.ndarray]:
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron/inf2", params=params, options=BuildOptions(fp32_cast="none"))
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    return [executor.get_output(number).numpy() for number in range(2)]


def test_a_cast_copy_takes_no_precision_from_other_readers() -> None:
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Exp", ["s"], ["y"]),
    ]
    model = make_model(nodes, {"x": (5, 7)}, ["half", "y"])
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    wanted = reference(model, {"x": x})
    half, y = run(model, x)
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, wanted[0], rtol=2.0**-10)
    np.testing.assert_allclose(y, wanted[1], rtol=2.0**-19)  # float32; rounded to float16 before, 2**-11 off


@pytest.mark.parametrize("largest", [0, 1])
def test_places_of_the_largest_of_float16(largest: int) -> None:
    """They are found by comparing with the maximum, which is an output too."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["y"]),
        helper.make_node("TopK", ["y", "count"], ["values", "places"], axis=0, largest=largest),
    ]
    weights = {"scale": np.random.default_rng(1).uniform(0.5, 1.5, (13, 1)).astype(np.float16), "count": np.array([1])}
    model = make_model(nodes, {"x": (4, 13, 6)}, ["values", "places"], weights, dtype=TensorProto.FLOAT16)
    x = np.random.default_rng(0).permutation(4 * 13 * 6).reshape(4, 13, 6).astype(np.float16)
    wanted = reference(model, {"x": x})
    values, places = run(model, x)
    np.testing.assert_array_equal(places, wanted[1])
    np.testing.assert_allclose(values, wanted[0], rtol=2.0**-10)
