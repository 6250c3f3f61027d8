"""SequenceMap, as torch writes hstack: its graph reads what lies outside, also in the function that it stands for."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import tvm_neuron
from tvm_neuron import relay


def test_its_graph_reads_constants_and_tensors_outside() -> None:
    def info(name: str, *shape: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    body = helper.make_graph(
        [helper.make_node("Mul", ["each", "factor"], ["more"]), helper.make_node("Add", ["more", "z"], ["made"])],
        "body", [info("each", 3, 4)], [info("made", 3, 4)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["factor"], value_float=3.0),
        helper.make_node("Constant", [], ["first"], value_int=0),
        helper.make_node("Constant", [], ["next"], value_int=1),
        helper.make_node("SequenceConstruct", ["x", "y"], ["both"]),
        helper.make_node("SequenceMap", ["both"], ["mapped"], body=body),
        helper.make_node("SequenceAt", ["mapped", "first"], ["left"]),
        helper.make_node("SequenceAt", ["mapped", "next"], ["right"]),
        helper.make_node("Concat", ["left", "right"], ["out"], axis=1),
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "mapped", [info(name, 3, 4) for name in "xyz"], [info("out", 3, 8)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    inputs = {name: np.random.default_rng(ord(name)).standard_normal((3, 4)).astype("float32") for name in "xyz"}
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, "neuron", params=params)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
