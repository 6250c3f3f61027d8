"""Weights that torch's exporter leaves in float32: those of bfloat16 into which it folded a batch norm."""

import ml_dtypes
import onnx
from onnx import TensorProto, helper, numpy_helper

_FOLDED = ("Conv", "ConvTranspose", "Gemm")


def with_narrow_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model`, where operators of data in bfloat16 have weights in bfloat16, too, as ONNX asks for."""
    graph = model.graph
    dtypes = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    weights = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
    narrow = {
        name
        for node in graph.node
        if node.op_type in _FOLDED and dtypes.get(node.input[0]) == TensorProto.BFLOAT16
        for name in node.input[1:]
        if name in weights
    }
    for name in narrow:
        values = numpy_helper.to_array(weights[name]).astype(ml_dtypes.bfloat16)
        weights[name].CopyFrom(helper.make_tensor(name, TensorProto.BFLOAT16, values.shape, values.tobytes(), True))
    for value in graph.value_info:
        if value.name in narrow:
            value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    return model
