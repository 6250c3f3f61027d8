"""What the manifest tells of tensors that pass between programs and CPU operators."""

import numpy as np
from onnx import helper

from tests.onnx_models import make_model, mixed_model
from tvm_neuron import BuildOptions, relay
from tvm_neuron.runtime import manifest


def test_programs_and_operators_on_the_cpu() -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    described = manifest(relay.build(mod, target="neuron", params=params))
    flow = described["flow"]
    assert described["order"] == ["neuron_0", "cpu:topk", "neuron_1"]
    assert [step["operator"] for step in flow["steps"]] == ["", "topk", ""]
    assert [step["reads"] for step in flow["steps"]] == [[[-1, 0]], [[0, 0]], [[1, 1], [0, 0]]]
    written = [[(row["shape"], row["dtype"]) for row in step["writes"]] for step in flow["steps"]]
    map_of = [1, 20, 8, 8]
    assert written == [[(map_of, "float32")] * 2, [(map_of, "float32"), (map_of, "int64")], [([1, 4], "float32")]]
    assert flow["results"] == [[2, 0], [0, 1]]  # out and gate


def test_constants_and_inputs_that_are_outputs() -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], "split", axis=1, num_outputs=2),
        helper.make_node("CumSum", ["b", "axis"], ["c"], "sum"),
        helper.make_node("Neg", ["k"], ["n"], "folded"),
        helper.make_node("Identity", ["x"], ["same"], "same"),
    ]
    weights = {"axis": np.int64(0), "k": np.float32([1, 2])}
    model = make_model(nodes, {"z": [3], "x": [4, 6]}, ["c", "n", "same"], weights)
    mod, params = relay.frontend.from_onnx(model)
    described = manifest(relay.build(mod, params=params, options=BuildOptions(on_cpu=("*",))))
    flow = described["flow"]
    reads = [[place for place in step["reads"] if place] for step in flow["steps"]]
    assert reads[0] == [[-1, 1]]  # x
    last = max(number for number, step in enumerate(flow["steps"]) if step["operator"] == "sum")
    assert flow["results"] == [[last, 0], None, [-1, 1]]
    assert flow["steps"][last]["writes"][0]["shape"] == [4, 3]
