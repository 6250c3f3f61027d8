"""The inputs that a comparison runs on: arrays that fit the model, or random ones; the model gets their sizes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tvm_neuron.errors import InputError, ModelError
from tvm_neuron.frontend.onnx.graphs import real_inputs
from tvm_neuron.numerics.model import Arrays

_BELOW = 2  # random whole numbers are 0 or 1: positions and masks that every model knows
Given = Mapping[str, NDArray[Any]]


def fitted(model: onnx.ModelProto, given: Given, sizes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """The arrays for all inputs, of which the model's open sizes are those from now on.

    Raises:
        InputError: one is missing, one too many, or of another shape or dtype.
    """
    values = {value.name: value for value in real_inputs(model.graph)}
    takes = ", ".join(f"'{name}'" for name in values) or "none"
    for name in given:
        if name not in values:
            raise InputError(f"input '{name}' is not one of the model's; it takes {takes}")
    for name, value in values.items():
        if name not in given:
            raise InputError(f"input '{name}' is missing; the model takes {takes}")
        wanted, dtype = _sizes(value, sizes), helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = given[name]
        if len(wanted) != array.ndim or any(w not in (None, n) for w, n in zip(wanted, array.shape, strict=True)):
            shape = ", ".join("?" if size is None else str(size) for size in wanted)
            raise InputError(f"input '{name}' has shape {list(array.shape)}; the model takes [{shape}]")
        if array.dtype != dtype:
            names = array.dtype.name, np.dtype(dtype).name
            raise InputError(f"input '{name}' is {names[0]}; the model takes {names[1]}: convert it")
        _resize(value, array.shape)
    return {name: given[name] for name in values}


def drawn(model: onnx.ModelProto, seed: int, sizes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Random arrays for all inputs: floats are normal, whole numbers and truths 0 or 1.

    Raises:
        ModelError: an input has an open size.
    """
    rng = np.random.default_rng(seed)
    found = {}
    for value in real_inputs(model.graph):
        dims = _sizes(value, sizes)
        shape = [size for size in dims if size is not None]
        if len(shape) < len(dims):
            raise ModelError(
                f"input '{value.name}' has an open size at axis {dims.index(None)}: give inputs, or its shape with "
                "--io-config (in Python: shapes)"
            )
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        is_float = np.issubdtype(dtype, np.floating) or dtype.kind == "V"
        numbers = rng.standard_normal(shape) if is_float else rng.integers(0, _BELOW, shape)
        found[value.name] = np.asarray(numbers).astype(dtype)
        _resize(value, found[value.name].shape)
    return found


def bind(model: onnx.ModelProto, values: Mapping[str, Any]) -> None:
    """Inputs whose values shapes depend on become constants of the model.

    Raises:
        ModelError: there is no such input, or its value is no array.
    """
    inputs = {value.name: value for value in real_inputs(model.graph)}
    for name, given in values.items():
        if name not in inputs:
            raise ModelError(f"a value is given for '{name}', but the model's inputs are: {', '.join(inputs)}")
        dtype = helper.tensor_dtype_to_np_dtype(inputs[name].type.tensor_type.elem_type)
        try:
            array = np.asarray(given, dtype)
        except (ValueError, TypeError) as error:
            raise ModelError(f"the value given for '{name}' is no array of {np.dtype(dtype).name}: {error}") from error
        model.graph.initializer.append(numpy_helper.from_array(array, name))
        model.graph.input.remove(inputs[name])


def _sizes(value: onnx.ValueInfoProto, sizes: Mapping[str, tuple[int, ...]]) -> list[int | None]:
    dims = value.type.tensor_type.shape.dim
    if value.name not in sizes:
        return [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in dims]
    return list(sizes[value.name])


def _resize(value: onnx.ValueInfoProto, shape: tuple[int, ...]) -> None:
    tensor = value.type.tensor_type
    tensor.ClearField("shape")
    tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in shape)
