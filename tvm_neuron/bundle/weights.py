"""without_weights and with_random_weights: a model whose weights are left out, and one that compiles all the same."""

import os
from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

_LARGEST_KEPT_ELEMS = 64  # shapes and axes are constants too
_LEFT_OUT = "weights left out by neuron-cc"


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the values of its larger floating weights taken out."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for tensor in found.graph.initializer:
        array_type = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if np.prod(tensor.dims) > _LARGEST_KEPT_ELEMS and (array_type.kind == "f" or array_type.name == "bfloat16"):
            for field in ("raw_data", "float_data", "double_data", "int32_data"):
                tensor.ClearField(field)
            tensor.doc_string = _LEFT_OUT
    return found


def with_random_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with seeded random numbers where weights were left out, small enough to keep activations finite.

    Raises:
        ValueError: they would take more memory than there is.
    """
    rng = np.random.default_rng(0)
    wanted = sum(prod(tensor.dims) * 8 for tensor in model.graph.initializer if tensor.doc_string == _LEFT_OUT)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if wanted > memory:
        raise ValueError(f"the weights left out of it take {wanted:,} bytes, this machine has {memory:,}")
    for tensor in model.graph.initializer:
        if tensor.doc_string == _LEFT_OUT:
            shape = tuple(tensor.dims)
            values = rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1.0))
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            tensor.CopyFrom(numpy_helper.from_array(values.astype(dtype), tensor.name))
    return model
