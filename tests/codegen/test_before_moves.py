"""What is computed of a moved tensor stays behind the move where it depends on places."""

import numpy as np
import pytest
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import relay


@pytest.mark.parametrize("upper", [0, 1])
def test_a_triangle_of_a_flattened_tensor(upper: int) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"], axis=3),
        helper.make_node("Trilu", ["f"], ["y"], upper=upper),
    ]
    model = make_model(nodes, {"x": (3, 2, 6, 3)}, ["y"])
    x = np.random.default_rng(0).standard_normal((3, 2, 6, 3)).astype(np.float32)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, params=params)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    np.testing.assert_array_equal(executor.get_output(0).numpy(), reference(model, {"x": x})[0])
