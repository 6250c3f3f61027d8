"""An ONNX model that rounds to bfloat16 by itself: what onnxruntime says bf16 arithmetic costs, independent of us."""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def round_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of every element, as float32."""
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def emulate_bfloat16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its inputs, every float tensor between its operators, and its weights (not biases) rounded.

    It must run without graph optimisations, which would take a cast there and back for nothing.
    """
    floats = _floats(model)
    made = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output]
    by = {name: f"{name}.bf16" for name in (*(value.name for value in model.graph.input), *made) if name in floats}
    given = [value.name for value in model.graph.input if value.name in by]
    nodes = [node for name in given for node in _rounding(name, by[name])]
    for node in model.graph.node:
        changed = onnx.NodeProto()
        changed.CopyFrom(node)
        changed.input[:] = [by.get(name, name) for name in node.input]
        nodes += [changed, *(n for name in node.output if name in by for n in _rounding(name, by[name]))]
    graph = helper.make_graph(nodes, "rounded", model.graph.input, model.graph.output)
    graph.initializer.extend(_rounded(proto) for proto in model.graph.initializer)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _floats(model: onnx.ModelProto) -> set[str]:
    """The float32 tensors that are no outputs of the model."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input)}
    unknown = {name for node in graph.node for name in node.output if name} - set(types)
    if untyped := unknown - {value.name for value in graph.output}:
        raise ValueError(f"of unknown type: {', '.join(sorted(untyped))}")
    return {name for name, kind in types.items() if kind == TensorProto.FLOAT} - {v.name for v in graph.output}


def _rounded(proto: onnx.TensorProto) -> onnx.TensorProto:
    if proto.data_type != TensorProto.FLOAT or len(proto.dims) < 2:
        return proto
    return numpy_helper.from_array(round_to_bfloat16(numpy_helper.to_array(proto)), proto.name)


def _rounding(name: str, result: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Cast", [name], [f"{result}.half"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", [f"{result}.half"], [result], to=TensorProto.FLOAT),
    ]
