"""ONNX operators that choose elements by constant indices, on the NeuronCore, against onnxruntime."""

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import tvm_neuron
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import build, frontend
from tvm_neuron.relay.graph_executor import GraphModule

RNG = np.random.default_rng(5)


def model(node: onnx.NodeProto, inputs: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    values = [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in inputs.items()]
    graph = helper.make_graph(
        [node], "g", values, [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(v, k) for k, v in known.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def check(node: onnx.NodeProto, inputs: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray]) -> None:
    """What only moves elements gives the very bits of onnxruntime, and stays on the NeuronCore."""
    proto = model(node, inputs, known)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, dict(inputs))
    mod, params = frontend.from_onnx(proto)
    lib = build(mod, target="neuron", params=params)
    assert {row.where for row in tvm_neuron.report(lib).placement} <= {"neuroncore", "compile time"}
    runner = GraphModule(lib["default"](tvm.cpu(0)))
    runner.run(**inputs)
    np.testing.assert_array_equal(runner.get_output(0).numpy(), expected)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CASES = {
    "Gather": ({"axis": 1}, {"x": floats(2, 7, 3)}, {"i": np.int64([[0, -1], [3, 3]])}),
    "GatherElements": ({"axis": 1}, {"x": floats(4, 6)}, {"i": RNG.integers(-6, 6, (4, 3))}),
    "GatherND": ({}, {"x": floats(3, 5, 4)}, {"i": np.int64([[0, 4], [-1, 2], [1, -5]])}),
    "ReverseSequence": ({"time_axis": 1, "batch_axis": 0}, {"x": floats(3, 6, 4)}, {"i": np.int64([6, 1, 4])}),
    "ScatterND": ({}, {"x": floats(6, 4), "u": floats(3, 4)}, {"i": np.int64([[5], [-6], [2]])}),
    "ScatterElements": ({"axis": 1}, {"x": floats(3, 8), "u": floats(3, 1)}, {"i": np.int64([[-1], [5], [2]])}),
}


@pytest.mark.parametrize("op", CASES)
def test_constant_indices(op: str) -> None:
    attrs, inputs, known = CASES[op]
    names = ["x", "i", "u"] if "u" in inputs else ["x", "i"]
    check(helper.make_node(op, names, ["y"], **attrs), inputs, known)


def test_lengths_known_at_run_time_turn_sequences_round() -> None:
    attrs, inputs, known = CASES["ReverseSequence"]
    node = helper.make_node("ReverseSequence", ["x", "i"], ["y"], **attrs)
    mod, params = frontend.from_onnx(model(node, inputs | known, {}))
    runner = GraphModule(build(mod, target="neuron", params=params)["default"](tvm.cpu(0)))
    for lengths in (known["i"], np.int64([1, 2, 3])):
        runner.run(x=inputs["x"], i=lengths)
        expected = [np.concatenate([row[:n][::-1], row[n:]]) for row, n in zip(inputs["x"], lengths, strict=True)]
        np.testing.assert_array_equal(runner.get_output(0).numpy(), expected)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_updates_that_are_combined(reduction: str) -> None:
    """Some places are updated twice, one three times; float32 is kept, and combined in onnxruntime's order."""
    rows = np.int64([[1], [4], [1], [-1], [1], [4]])
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    check(node, {"x": floats(6, 10), "u": floats(6, 10)}, {"i": rows})
    places = RNG.integers(-3, 3, (6, 5))
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=reduction)
    check(node, {"x": floats(6, 10), "u": floats(6, 5)}, {"i": places})


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
@pytest.mark.parametrize("places", [[2], [3, -4, 1], [3, 2, 1, 0], []], ids=str)
def test_slices_that_are_scattered_whole(places: list[int], reduction: str) -> None:
    """As torch's select_scatter does: one place for all of a slice; and no slice at all."""
    rows = np.broadcast_to(np.int64(places)[:, None], (3, len(places), 5))
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=reduction)
    check(node, {"x": floats(3, 4, 5), "u": floats(3, len(places), 5)}, {"i": np.ascontiguousarray(rows)})


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "constant"])
def test_padding_of_every_kind_by_any_width(mode: str) -> None:
    node = helper.make_node("Pad", ["x", "widths", "", "axes"], ["y"], mode=mode)
    check(node, {"x": floats(2, 40, 5)}, {"widths": np.int64([3, 2, 1, 4]), "axes": np.int64([1, -1])})


def test_padding_with_a_number_known_at_run_time_only() -> None:
    node = helper.make_node("Pad", ["x", "widths", "fill"], ["y"])
    check(node, {"x": floats(2, 4, 5), "fill": np.float32([-np.inf])}, {"widths": np.int64([0, 1, 2, 0, 0, 1])})


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_random_gathers(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    limit = shape[axis]
    indices = np.int64(data.draw(st.lists(st.integers(-limit, limit - 1), min_size=1, max_size=9)))
    check(helper.make_node("Gather", ["x", "i"], ["y"], axis=axis), {"x": floats(*shape)}, {"i": indices})


def test_an_index_outside_is_an_error_of_the_model() -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="pick", axis=1)
    with pytest.raises(ModelError, match=r"pick.*index 7 is outside of the dimension it chooses from \(7 elements\)"):
        frontend.from_onnx(model(node, {"x": floats(2, 7)}, {"i": np.int64([0, 7])}))
