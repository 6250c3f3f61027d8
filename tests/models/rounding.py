"""An ONNX model that rounds to bfloat16 by itself: what onnxruntime says bf16 arithmetic costs, independent of us."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SPLIT = 65537.0  # 2**16 + 1: Veltkamp's splitting leaves the upper 24 - 16 = 8 bits of a float32, rounded to nearest


def round_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of every element, as float32."""
    far = array * np.float32(SPLIT)
    return far - (far - array)


def emulate_bfloat16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its inputs, every float tensor between its operators, and its weights (not biases) rounded.

    It must run without graph optimisations, which would take `x * s - (x * s - x)` for `x`.
    """
    rounded = onnx.ModelProto()
    rounded.CopyFrom(model)
    graph = rounded.graph
    for proto in graph.initializer:
        if proto.data_type == TensorProto.FLOAT and len(proto.dims) > 1:
            proto.CopyFrom(numpy_helper.from_array(round_to_bfloat16(numpy_helper.to_array(proto)), proto.name))
    graph.initializer.append(numpy_helper.from_array(np.float32(SPLIT), "bf16.split"))
    known = onnx.shape_inference.infer_shapes(model).graph
    floats = {
        value.name
        for value in [*known.input, *known.value_info, *known.output]
        if value.type.tensor_type.elem_type == TensorProto.FLOAT
    }
    ends = {value.name for value in graph.output}
    between = [name for name in _made(graph) if name in floats - ends]
    by = {name: f"{name}.bf16" for name in between}
    nodes = [node for name in [v.name for v in graph.input] if name in by for node in _rounding(name, by[name])]
    for node in model.graph.node:
        changed = onnx.NodeProto()
        changed.CopyFrom(node)
        changed.input[:] = [by.get(name, name) for name in node.input]
        nodes += [changed, *(n for name in node.output if name in by for n in _rounding(name, by[name]))]
    del graph.node[:]
    graph.node.extend(nodes)
    return rounded


def _made(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (name for node in graph.node for name in node.output if name)


def _rounding(name: str, result: str) -> list[onnx.NodeProto]:
    far, rest = f"{result}.far", f"{result}.rest"
    return [
        helper.make_node("Mul", [name, "bf16.split"], [far]),
        helper.make_node("Sub", [far, name], [rest]),
        helper.make_node("Sub", [far, rest], [result]),
    ]
