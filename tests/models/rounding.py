"""An ONNX model that rounds to bfloat16 by itself: what onnxruntime says bf16 arithmetic costs, independent of us."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SPLIT = 65537.0  # 2**16 + 1: Veltkamp's splitting leaves the upper 24 - 16 = 8 bits of a float32, rounded to nearest
_NO_FLOATS = {"Shape", "Constant", "ConstantOfShape", "ArgMax", "NonZero", "Cast"}  # what may make no float32


def round_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of every element, as float32."""
    far = array * np.float32(SPLIT)
    return far - (far - array)


def emulate_bfloat16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its inputs, every float tensor between its operators, and its weights (not biases) rounded.

    It must run without graph optimisations, which would take `x * s - (x * s - x)` for `x`.
    """
    ends = {value.name for value in model.graph.output}
    made = (name for node in model.graph.node if node.op_type not in _NO_FLOATS for name in node.output[:1])
    by = {name: f"{name}.bf16" for name in (*(value.name for value in model.graph.input), *made) if name not in ends}
    nodes = [node for value in model.graph.input for node in _rounding(value.name, by[value.name])]
    for node in model.graph.node:
        changed = onnx.NodeProto()
        changed.CopyFrom(node)
        changed.input[:] = [by.get(name, name) for name in node.input]
        nodes += [changed, *(n for name in node.output if name in by for n in _rounding(name, by[name]))]
    graph = helper.make_graph(nodes, "rounded", model.graph.input, model.graph.output)
    graph.initializer.extend(_rounded(proto) for proto in model.graph.initializer)
    graph.initializer.append(numpy_helper.from_array(np.float32(SPLIT), "bf16.split"))
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _rounded(proto: onnx.TensorProto) -> onnx.TensorProto:
    if proto.data_type != TensorProto.FLOAT or len(proto.dims) < 2:
        return proto
    return numpy_helper.from_array(round_to_bfloat16(numpy_helper.to_array(proto)), proto.name)


def _rounding(name: str, result: str) -> list[onnx.NodeProto]:
    far, rest = f"{result}.far", f"{result}.rest"
    return [
        helper.make_node("Mul", [name, "bf16.split"], [far]),
        helper.make_node("Sub", [far, name], [rest]),
        helper.make_node("Sub", [far, rest], [result]),
    ]
