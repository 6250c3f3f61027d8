"""Small ONNX models for the tests."""

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Arrays = dict[str, NDArray]


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[int | str]],
    outputs: Sequence[str],
    weights: Arrays | None = None,
    opset: int = 18,
    dtype: int = TensorProto.FLOAT,
    dtypes: dict[str, int] | None = None,
) -> onnx.ModelProto:
    """A model of `nodes`; inputs are of `dtype` but for those in `dtypes`, outputs get types by shape inference."""
    of = dict.fromkeys(inputs, dtype) | (dtypes or {})
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, of[name], shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {value.name: value for value in inferred.graph.value_info} | {v.name: v for v in inferred.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(types[name] for name in outputs)
    return model


def mixed_model() -> onnx.ModelProto:
    """Two parts for the NeuronCore around a long TopK; one part has two outputs, one weight serves both sides."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((20, 3, 3, 3)).astype("float32"),
        "w2": rng.standard_normal((4, 20)).astype("float32"),
        "k": np.int64([20]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Split", ["r"], ["left", "right"], name="split", axis=1, num_outputs=2),
        helper.make_node("Concat", ["right", "left"], ["swapped"], name="concat", axis=1),
        helper.make_node("TopK", ["swapped", "k"], ["largest", "index"], name="topk", axis=1),
        helper.make_node("Cast", ["index"], ["cast"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["cast", "swapped"], ["product"], name="mul"),
        helper.make_node("GlobalAveragePool", ["product"], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"),
        helper.make_node("Transpose", ["w2"], ["w2t"], name="transpose", perm=[1, 0]),
        helper.make_node("MatMul", ["flat", "w2t"], ["y"], name="matmul"),
        helper.make_node("Identity", ["y"], ["out"], name="identity"),
        helper.make_node("Sigmoid", ["swapped"], ["gate"], name="sigmoid"),
    ]
    return make_model(nodes, {"x": [1, 3, 8, 8]}, ["out", "gate"], weights)


def reference(model: onnx.ModelProto, inputs: Arrays) -> list[NDArray]:
    """What onnxruntime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)
