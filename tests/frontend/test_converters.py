"""Clip, Pad and Tile stay operators that the partition can look into, and give what onnxruntime gives."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.relay import graph_executor
from tvm_neuron.runtime import report

LIMITS = {"low": np.float32(-0.4), "high": np.float32(0.7)}


@pytest.mark.parametrize(
    ("node", "weights", "opset"),
    [
        (helper.make_node("Clip", ["x", "low", "high"], ["y"]), LIMITS, 18),
        (helper.make_node("Clip", ["x", "", "high"], ["y"]), {"high": LIMITS["high"]}, 18),
        (helper.make_node("Clip", ["x"], ["y"], min=-0.25, max=0.5), {}, 9),
        (helper.make_node("Pad", ["x", "p"], ["y"]), {"p": np.int64([0, 0, 1, 2, 0, 0, 3, 0])}, 18),
        (helper.make_node("Pad", ["x", "p", "v"], ["y"]), {"p": np.int64([0, 0, 1, 1] * 2), "v": np.float32(1.5)}, 18),
        (helper.make_node("Slice", ["x"], ["y"], starts=[1, -4], ends=[9, 100], axes=[1, 3]), {}, 9),
        (helper.make_node("Tile", ["x", "r"], ["y"]), {"r": np.int64([1, 1, 2, 3])}, 18),
    ],
)
def test_on_the_core_as_onnxruntime_has_it(node: Any, weights: dict[str, np.ndarray], opset: int) -> None:
    model = make_model([node], {"x": [1, 6, 5, 7]}, ["y"], weights, opset=opset)
    x = np.random.default_rng(3).standard_normal((1, 6, 5, 7), dtype=np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), expected)  # float32 throughout
    assert [row.where for row in report(library).placement] == ["neuroncore"]


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("read", ["a", "b", "c", "ab", "bc"])
@pytest.mark.parametrize("operand", ["x", "k"])
def test_a_split_of_which_some_parts_are_read(operand: str, read: str, opset: int) -> None:
    count = {"num_outputs": 3} if opset >= 18 else {}
    nodes = [
        helper.make_node("Split", [operand], ["a", "b", "c"], axis=1, **count),
        *(helper.make_node("Add", [part, "x1"], [f"{part}1"]) for part in read),
        helper.make_node("Slice", ["x", "zero", "two", "one"], ["x1"]),
    ]
    rng = np.random.default_rng(3)
    x, k = rng.standard_normal((2, 4, 6), dtype=np.float32)
    weights = {"k": k} | {name: np.int64([number]) for number, name in enumerate(["zero", "one", "two"])}
    model = make_model([nodes[-1], *nodes[:-1]], {"x": x.shape}, [f"{part}1" for part in read], weights, opset=opset)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    executor = graph_executor.GraphModule(relay.build(mod, target="neuron", params=params)["default"]())
    executor.run(x=x)
    for number, wanted in enumerate(expected):
        np.testing.assert_array_equal(executor.get_output(number).numpy(), wanted)  # one addition in float32
