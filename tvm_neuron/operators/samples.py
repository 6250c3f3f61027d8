"""samples: small ONNX models of one operator each, from the cases that the onnx package tests backends with.

Each comes as it is and with the operands after the first known at compile time; some of each operator in all dtypes.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

DTYPES = ("FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT32", "INT64", "BOOL")
CONSTANT = "operands after the first known at compile time"
RETYPED = 3
"""So many models of an operator are tried in all dtypes."""
_MOST_ELEMS = 1 << 16  # larger cases test nothing else, and take long


@dataclass(frozen=True)
class Sample:
    """A model with one node; `condition` says what it has that the operator need not have."""

    model: onnx.ModelProto
    dtype: str
    condition: str = ""

    @property
    def op(self) -> str:
        """The operator."""
        return str(self.model.graph.node[0].op_type)

    @property
    def attributes(self) -> str:
        """Those of the node, as text."""
        node = self.model.graph.node[0]
        shown = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.type not in (a.GRAPH, a.TENSOR)}
        return ", ".join(f"{name}={_text(value)}" for name, value in sorted(shown.items()))


def samples() -> Iterator[Sample]:
    """All of them, by operator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # making the cases overflows here and there, as it is meant to
        cases = load_model_tests(kind="node")
    plain = [(case.model, list(case.data_sets[0][0])) for case in sorted(cases, key=_name_of) if _is_plain(case.model)]
    shown = _of_most_dimensions(plain)
    for model, values in plain:
        dtype = _first_dtype(model)
        yield Sample(model, _name(dtype))
        if len(model.graph.input) > 1:
            yield Sample(_with_constants(model, values), _name(dtype), CONSTANT)
        if id(model) in shown:
            yield from _in_other_dtypes(model, values)


def _name_of(case: TestCase) -> str:
    return str(case.name)


def _of_most_dimensions(plain: list[tuple[onnx.ModelProto, list[Any]]]) -> set[int]:
    """Of each operator the `RETYPED` float32 models with the most dimensions."""
    by_op: dict[str, list[onnx.ModelProto]] = defaultdict(list)
    for model, _ in plain:
        if _first_dtype(model) == "FLOAT":
            by_op[model.graph.node[0].op_type].append(model)

    def dimensions(model: onnx.ModelProto) -> int:
        return -sum(len(value.type.tensor_type.shape.dim) for value in model.graph.input)

    return {id(model) for models in by_op.values() for model in sorted(models, key=dimensions)[:RETYPED]}


def _is_plain(model: onnx.ModelProto | None) -> bool:
    """One node of the standard's own operators on tensors of moderate size."""
    if model is None:
        return False
    graph = model.graph
    types = [value.type for value in graph.input]
    if len(graph.node) != 1 or graph.node[0].domain not in ("", "ai.onnx") or not types:
        return False
    tensors = [type_.tensor_type for type_ in types if type_.HasField("tensor_type")]
    elems = [int(np.prod([dim.dim_value for dim in tensor.shape.dim])) for tensor in tensors]
    return len(tensors) == len(types) and max(elems) <= _MOST_ELEMS


def _first_dtype(model: onnx.ModelProto) -> str:
    return str(TensorProto.DataType.Name(model.graph.input[0].type.tensor_type.elem_type))


def _name(dtype: str) -> str:
    """The dtype's name in NumPy and Relax."""
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(dtype, dtype.lower())


def _with_constants(model: onnx.ModelProto, values: list[Any]) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    inputs = list(changed.graph.input)
    del changed.graph.input[1:]
    for value, array in zip(inputs[1:], values[1:], strict=True):
        changed.graph.initializer.append(_tensor(value.name, array, value.type.tensor_type.elem_type))
    return changed


def _in_other_dtypes(model: onnx.ModelProto, values: list[Any]) -> Iterator[Sample]:
    for name in DTYPES:
        code = TensorProto.DataType.Value(name)
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        for value in (*changed.graph.input, *changed.graph.output):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = code
        try:
            onnx.shape_inference.infer_shapes(changed, check_type=True, strict_mode=True)
        except onnx.shape_inference.InferenceError:
            continue  # the standard does not have the operator in this dtype
        yield Sample(changed, _name(name))
        if len(changed.graph.input) > 1:
            yield Sample(_with_constants(changed, values), _name(name), CONSTANT)


def _tensor(name: str, array: Any, code: int) -> onnx.TensorProto:
    if isinstance(array, TensorProto):  # of a dtype that NumPy lacks
        tensor = TensorProto()
        tensor.CopyFrom(array)
        tensor.name = name
        return tensor
    with np.errstate(invalid="ignore", over="ignore"):  # of interest is the dtype, whatever the values become
        return numpy_helper.from_array(np.asarray(array).astype(helper.tensor_dtype_to_np_dtype(code)), name)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return str([_text(item) for item in value]).replace("'", "") if isinstance(value, list | tuple) else str(value)
