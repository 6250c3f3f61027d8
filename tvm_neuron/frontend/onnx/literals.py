"""The values that a model holds: of tensors, and of Constant nodes in any of their forms."""

import numpy as np
import onnx
from onnx import numpy_helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.values import Known


def array_of(tensor: onnx.TensorProto) -> np.ndarray:
    """A tensor's values.

    Raises:
        ModelError: they don't fit its shape, or its dtype is none.
    """
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        raise ModelError(f"the model is damaged: tensor '{tensor.name}': {error}") from error


def constant_value(node: onnx.NodeProto) -> Known:
    """The value of a Constant in any of its forms.

    Raises:
        ModelError: it has none.
    """
    attribute = node.attribute[0] if node.attribute else onnx.AttributeProto()
    match attribute.name, attribute.type:
        case "value", onnx.AttributeProto.TENSOR:
            return Known(array_of(attribute.t))
        case "value_int", onnx.AttributeProto.INT:
            return Known(np.array(attribute.i, np.int64))
        case "value_ints", onnx.AttributeProto.INTS:
            return Known(np.array(attribute.ints, np.int64))
        case "value_float", onnx.AttributeProto.FLOAT:
            return Known(np.array(attribute.f, np.float32))
        case "value_floats", onnx.AttributeProto.FLOATS:
            return Known(np.array(attribute.floats, np.float32))
        case "value_string", onnx.AttributeProto.STRING:
            return Known(np.array(attribute.s, object))
        case "value_strings", onnx.AttributeProto.STRINGS:
            return Known(np.array(attribute.strings, object))
        case "sparse_value", onnx.AttributeProto.SPARSE_TENSOR:
            return Known(dense(attribute.sparse_tensor))
    raise ModelError(f"the model is damaged: Constant '{node.name}' has no value")


def dense(sparse: onnx.SparseTensorProto) -> np.ndarray:
    """A sparse tensor with its zeros."""
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    try:
        result = np.zeros(tuple(sparse.dims), values.dtype)
        if indices.ndim == 1:
            result.reshape(-1)[indices] = values
        else:
            result[tuple(indices.T)] = values
    except (ValueError, IndexError) as error:
        raise ModelError(f"the model is damaged: sparse tensor '{sparse.values.name}': {error}") from error
    return result
