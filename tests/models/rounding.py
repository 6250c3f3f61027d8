"""An ONNX model that rounds to bfloat16 by itself: what onnxruntime says bf16 arithmetic costs, independent of us."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

_NUMBERS = {"bf16.split": 2.0**16 + 1, "bf16.most": 2.0**100, "bf16.least": -(2.0**100)}
"""Splitting by 2**16 + 1 leaves the upper 24 - 16 = 8 bits of a float32, rounded to nearest."""


def round_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of every element, as float32."""
    return array.astype(ml_dtypes.bfloat16).astype(np.float32)


def emulate_bfloat16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its inputs, every float tensor between its operators, and its weights (not biases) rounded.

    It must run without graph optimisations, which would take `x * s - (x * s - x)` for `x`.
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
    graph.initializer.extend(numpy_helper.from_array(np.float32(number), name) for name, number in _NUMBERS.items())
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _floats(model: onnx.ModelProto) -> set[str]:
    """The float32 tensors that are no outputs of the model, by onnxruntime's inference (onnx's skips old operators)."""
    ends = {value.name for value in model.graph.output}
    read = {name for node in model.graph.node for name in node.input}
    made = [name for node in model.graph.node for name in node.output if name in read - ends]
    told = onnx.ModelProto()
    told.CopyFrom(model)
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(told.SerializeToString(), options)
    known = (*session.get_inputs(), *session.get_outputs())
    return {value.name for value in known if value.type == "tensor(float)"} - ends


def _rounded(proto: onnx.TensorProto) -> onnx.TensorProto:
    if proto.data_type != TensorProto.FLOAT or len(proto.dims) < 2:
        return proto
    return numpy_helper.from_array(round_to_bfloat16(numpy_helper.to_array(proto)), proto.name)


def _rounding(name: str, result: str) -> list[onnx.NodeProto]:
    """Veltkamp's splitting, of operators that every opset has; masks of minus infinity become large numbers."""
    below, limited, far, rest = (f"{result}.{step}" for step in ("below", "limited", "far", "rest"))
    return [
        helper.make_node("Min", [name, "bf16.most"], [below]),
        helper.make_node("Max", [below, "bf16.least"], [limited]),
        helper.make_node("Mul", [limited, "bf16.split"], [far]),
        helper.make_node("Sub", [far, limited], [rest]),
        helper.make_node("Sub", [far, rest], [result]),
    ]
