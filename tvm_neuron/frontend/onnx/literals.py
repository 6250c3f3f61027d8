"""The value of a Constant node in any of its forms."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvm_neuron.frontend.onnx.values import Known


def constant_value(node: onnx.NodeProto) -> Known:
    """The value of a Constant in any of its forms."""
    attribute = node.attribute[0]
    value = helper.get_attribute_value(attribute)
    match attribute.name:
        case "value":
            return Known(numpy_helper.to_array(value))
        case "value_int" | "value_ints":
            return Known(np.array(value, np.int64))
        case "value_float" | "value_floats":
            return Known(np.array(value, np.float32))
        case "value_string" | "value_strings":
            return Known(np.array(value, object))
        case _:
            return Known(dense(value))


def dense(sparse: onnx.SparseTensorProto) -> np.ndarray:
    """A sparse tensor with its zeros."""
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        result.reshape(-1)[indices] = values
    else:
        result[tuple(indices.T)] = values
    return result
