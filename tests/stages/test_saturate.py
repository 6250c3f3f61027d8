"""--enable-saturate-infinity: no NaN where infinities meet; without infinities the same bits; outputs keep theirs."""

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import tvm_neuron
from tests.codegen.random_networks import RandomNetwork
from tests.onnx_models import Arrays, make_model
from tvm_neuron import BuildOptions, relay

INF = np.float32(np.inf)


def run(model: onnx.ModelProto, inputs: Arrays, saturate: bool, cast: str = "all") -> NDArray:
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(saturate_infinity=saturate, fp32_cast=cast)
    library = relay.build(mod, target="neuron", params=params, options=options)
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    return executor.get_output(0).numpy()


def masked_softmax() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Add", ["x", "mask"], ["masked"], name="add"),
        helper.make_node("Softmax", ["masked"], ["y"], name="softmax", axis=1),
    ]
    return make_model(nodes, {"x": [4, 8], "mask": [4, 8]}, ["y"])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_row_that_is_masked_as_a_whole() -> None:
    mask = np.zeros((4, 8), np.float32)
    mask[1] = -INF
    mask[2, :4] = -INF
    inputs = {"x": np.zeros((4, 8), np.float32), "mask": mask}
    assert np.isnan(run(masked_softmax(), inputs, saturate=False)[1]).all()
    actual = run(masked_softmax(), inputs, saturate=True)
    wanted = np.full((4, 8), 1 / 8, np.float32)
    wanted[2] = [0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25]
    np.testing.assert_allclose(actual, wanted, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_what_overflows_in_float16_does_not_spread() -> None:
    """1e6 is infinite in float16, and an infinite number times zero is NaN."""
    weights = {"w": np.zeros((128, 8), np.float32)}
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"], name="mul"),
        helper.make_node("MatMul", ["square", "w"], ["y"], name="matmul"),
    ]
    model = make_model(nodes, {"x": [4, 128]}, ["y"], weights)
    inputs = {"x": np.full((4, 128), 1000, np.float32)}
    assert np.isnan(run(model, inputs, saturate=False, cast="all-fp16")).all()
    np.testing.assert_array_equal(run(model, inputs, saturate=True, cast="all-fp16"), np.zeros((4, 8)))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("op", ["MatMul", "ReduceSum"])
def test_infinite_inputs_of_sums(op: str) -> None:
    x = np.zeros((4, 8), np.float32)
    x[:, 0], x[:, 1] = INF, -INF
    weights = {"w": np.ones((8, 4), np.float32)} if op == "MatMul" else {"w": np.array([1])}
    model = make_model([helper.make_node(op, ["x", "w"], ["y"], name="sum")], {"x": [4, 8]}, ["y"], weights)
    assert np.isnan(run(model, {"x": x}, saturate=False)).all()
    np.testing.assert_array_equal(run(model, {"x": x}, saturate=True), np.zeros((4, 4 if op == "MatMul" else 1)))


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_outputs_keep_their_infinities() -> None:
    model = make_model([helper.make_node("Log", ["x"], ["y"], name="log")], {"x": [4, 8]}, ["y"])
    assert np.isneginf(run(model, {"x": np.zeros((4, 8), np.float32)}, saturate=True)).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_same_bits_without_infinities(seed: int) -> None:
    network = RandomNetwork(seed, operators=6)
    model, inputs = network.model(), network.inputs()
    np.testing.assert_array_equal(run(model, inputs, saturate=True), run(model, inputs, saturate=False))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cast", ["all-fp16", "matmult"])
@pytest.mark.parametrize("seed", [12, 13, 21, 22, *(pytest.param(s, marks=pytest.mark.slow) for s in range(40, 60))])
def test_no_nan_from_infinite_inputs(seed: int, cast: str) -> None:
    network = RandomNetwork(seed, operators=7)
    inputs = network.inputs()
    inputs["x"].flat[::7], inputs["x"].flat[3::11] = INF, -INF
    assert not np.isnan(run(network.model(), inputs, saturate=True, cast=cast)).any()


def test_infinite_constants_that_are_moved() -> None:
    """A mask that is joined to run-time values before arithmetic meets it."""
    weights = {"mask": np.array([[-INF] * 8] * 4, np.float32), "zero": np.zeros((8, 8), np.float32)}
    nodes = [
        helper.make_node("Concat", ["x", "mask"], ["both"], name="concat", axis=0),
        helper.make_node("Mul", ["both", "zero"], ["y"], name="mul"),
    ]
    model = make_model(nodes, {"x": [4, 8]}, ["y"], weights)
    np.testing.assert_array_equal(run(model, {"x": np.ones((4, 8), np.float32)}, saturate=True), np.zeros((8, 8)))
