"""without_weights and with_random_weights: a model whose weights are left out, and one that compiles all the same.

What stays are shapes, dtypes and names, and the values of constants of at most 64 elements that only shape the model:
axes, sizes, positions (see `structure`). All other tensors lose their values, wherever they lie: initializers, also
sparse ones, attributes, inner graphs, functions. So do attributes of operators outside of the standard that hold
several floats or much else, texts about the model, and what is for training.
"""

import os
from collections.abc import Collection, Iterator
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tvm_neuron.bundle.structure import structural
from tvm_neuron.frontend.onnx.literals import constant_value, dense
from tvm_neuron.frontend.onnx.messages import messages

_MOST = 64  # elements of a shape or of positions that stay, as well as bytes of a text
_KEPT, _WEIGHTS, _POSITIONS = (f"{what} by neuron-cc" for what in ("kept", "weights left out", "positions left out"))
_STANDARD = ("", "ai.onnx")


def without_weights(model: onnx.ModelProto, given: Collection[str]) -> onnx.ModelProto:
    """The model without its weights; `given` are the inputs whose values are known when it is compiled."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    found.DiscardUnknownFields()
    found.ClearField("training_info")
    for message in messages(found):
        for field in ("doc_string", "metadata_props", "quantization_annotation"):
            if field in message.DESCRIPTOR.fields_by_name:
                message.ClearField(field)
        if isinstance(message, onnx.GraphProto):
            message.initializer.extend(_as_dense(each) for each in message.sparse_initializer)
            message.ClearField("sparse_initializer")
        if isinstance(message, onnx.NodeProto):
            _strip_attributes(message)
        if isinstance(message, onnx.FunctionProto):
            for default in message.attribute_proto:
                _strip_attribute(default)
    for tensor, is_structural in structural(found, given):
        if is_structural:
            _keep(tensor)
    for tensor in _tensors(found):
        if tensor.doc_string != _KEPT:
            bare = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            bare.doc_string = tensor.doc_string or _WEIGHTS
            tensor.CopyFrom(bare)
    return found


def with_random_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with seeded numbers where values were left out: zeros for positions, random ones for the others.

    Floats are positive, as scales and variances are, and small where many are added; integers are 0 and 1.

    Raises:
        ValueError: they would take more memory than there is.
    """
    rng = np.random.default_rng(0)
    left_out = [tensor for tensor in _tensors(model) if tensor.doc_string in (_WEIGHTS, _POSITIONS)]
    wanted = sum(prod(tensor.dims) * 8 for tensor in left_out)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if wanted > memory:
        raise ValueError(f"the weights left out of it take {wanted:,} bytes, this machine has {memory:,}")
    for tensor in left_out:
        values = _invented(tensor, rng)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return model


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    return (message for message in messages(model) if isinstance(message, onnx.TensorProto))


def _strip_attributes(node: onnx.NodeProto) -> None:
    """A Constant of any form gets a tensor; what operators outside of the standard hold is cut short."""
    if node.domain not in _STANDARD or not onnx.defs.has(node.op_type):
        for attribute in node.attribute:
            _strip_attribute(attribute)
    elif node.op_type == "Constant" and [each for each in node.attribute if _is_other_form(each)]:
        value = numpy_helper.from_array(constant_value(node).array)
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("value", value))


def _is_other_form(attribute: onnx.AttributeProto) -> bool:
    """Whether it gives a Constant its value, not as a tensor; in a function it may only name who does."""
    return attribute.name != "value" and not attribute.ref_attr_name


def _strip_attribute(attribute: onnx.AttributeProto) -> None:
    attribute.floats[:] = [1.0] * len(attribute.floats)
    if len(attribute.ints) > _MOST:
        attribute.ints[:] = [0] * len(attribute.ints)
    if len(attribute.s) > _MOST:
        attribute.s = b""
    attribute.strings[:] = [b"" if len(each) > _MOST else each for each in attribute.strings[:_MOST]]


def _as_dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    return numpy_helper.from_array(dense(sparse), sparse.values.name)


def _keep(tensor: onnx.TensorProto) -> None:
    """Its values, and nothing else that it may hold; too many of them become zeros, which are positions as well."""
    if prod(tensor.dims) <= _MOST:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    tensor.doc_string = _KEPT if prod(tensor.dims) <= _MOST else _POSITIONS


def _invented(tensor: onnx.TensorProto, rng: np.random.Generator) -> NDArray[Any]:
    shape, dtype = tuple(tensor.dims), np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if dtype.kind == "O":
        return np.full(shape, "", object)
    if tensor.doc_string == _POSITIONS:
        values = np.zeros(shape)
    elif dtype.name.startswith(("int", "uint", "bool")):
        values = rng.integers(0, 2, shape).astype(float)
    else:
        values = rng.uniform(0.25, 1, shape) / np.sqrt(max(prod(shape[1:]), 1))
    return np.asarray(values, dtype)
