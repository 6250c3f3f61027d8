"""onnx_model: ONNX models as Relay's users import them, with shapes and values that only calls tell."""

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import tvm

from tvm_neuron import frontend
from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.frontend.onnx.checks import NeedsShapeError, load_model
from tvm_neuron.frontend.onnx.converters.random import DRAWING
from tvm_neuron.frontend.onnx.graphs import node_origins, real_inputs
from tvm_neuron.frontend.onnx.needs import NeedsValueError
from tvm_neuron.frontend.onnx.stages import Stages
from tvm_neuron.relay.ir.expr import Var
from tvm_neuron.relay.ir.ty import AnyDim, TensorType
from tvm_neuron.relay.open_model import OpenModel

Model: TypeAlias = onnx.ModelProto | str | os.PathLike[str]
Shapes: TypeAlias = Mapping[str, Sequence[Any]]


def from_onnx(
    model: Model, shape: Shapes | None, dtype: str | dict[str, str], opset: int | None, freeze_params: bool,
    values: Mapping[str, Any] | None,
) -> tuple[tvm.IRModule, frontend.Params]:  # fmt: skip
    """The module and its weights; an open one has them inside. The errors are those of `frontend.from_onnx`."""
    shapes = dict(shape or {})
    model = _with_seeds(_with_axes(model, shapes))
    given = {name: tuple(dims) for name, dims in shapes.items()}
    try:
        return frontend.from_onnx(model, given, dtype, opset, freeze_params, values=values)
    except ModelError as error:
        is_open = isinstance(error, NeedsShapeError | NeedsValueError)
        if not is_open and _stages(model, given, dtype, opset, values or {}) is None:
            raise
        graph = load_model(model)[0].graph
        inputs = [value for value in real_inputs(graph) if value.name not in (values or {})]
        if any(value.name not in shapes and not value.type.tensor_type.HasField("shape") for value in inputs):
            raise  # not even the number of axes is known
        params = [_parameter(value, shapes.get(value.name), dtype) for value in inputs]
        lines = [f"  {', '.join(node.output)} = {node.op_type}({', '.join(node.input)})" for node in graph.node]
        rest = _Rest(model, shapes, dtype, opset, values or {})
        return tvm.IRModule({"main": OpenModel(params, "\n".join(lines), rest)}), {}


def write_renamed(model: Model, folder: str) -> None:
    """A copy of the model in `folder` whose nodes have the names that reports call them by.

    Raises OptionError: it can't be written.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(load_model(model)[0])
    for node, origin in zip(copy.graph.node, node_origins(copy.graph.node), strict=True):
        node.name = origin.name
    path = Path(folder, f"tvm_exported_model_{time.strftime('%Y%m%d_%H%M%S')}.onnx")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(copy, path)
    except OSError as error:
        raise OptionError(f"from_onnx: {path} can't be written: {error.strerror}") from error


@dataclass(frozen=True)
class _Rest:
    model: Model
    shapes: Shapes
    dtype: str | dict[str, str]
    opset: int | None
    values: Mapping[str, Any]

    def module(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> tvm.IRModule | Stages:
        """`open_model.Import.module`."""
        given = {name: tuple(dims) for name, dims in {**self.shapes, **shapes}.items()}
        model, known = _with_axes(self.model, given), {**self.values, **values}
        try:
            return frontend.from_onnx(model, given, self.dtype, self.opset, values=known)[0]
        except (NeedsShapeError, NeedsValueError):
            raise
        except ModelError:
            stages = _stages(model, given, self.dtype, self.opset, known)
            if stages is None:
                raise
            return stages


def _stages(
    model: Model, shapes: dict[str, tuple[int, ...]], dtype: str | dict[str, str], opset: int | None,
    values: Mapping[str, Any],
) -> Stages | None:  # fmt: skip
    """A model that can't be imported as a whole in stages; None if what is in the way is no size that a run tells."""
    try:
        stages = Stages(model, shapes, dtype, opset, values)
        return stages if stages.first().left else None
    except ModelError:
        return None


def _parameter(value: onnx.ValueInfoProto, given: Sequence[Any] | None, dtype: str | dict[str, str]) -> Var:
    tensor = value.type.tensor_type
    own = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else AnyDim() for dim in tensor.shape.dim]
    elements = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    chosen = dtype.get(value.name, elements) if isinstance(dtype, dict) else elements
    return Var(value.name, TensorType(own if given is None else given, chosen))


def _with_axes(model: Model, shapes: Shapes) -> Model:
    """The model with the given shapes where its own have other axes."""
    if not isinstance(model, onnx.ModelProto):
        return model
    changed = [value.name for value in real_inputs(model.graph) if _has_other_axes(value, shapes.get(value.name))]
    if not changed:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        if value.name in changed:
            tensor = value.type.tensor_type
            value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, tensor.elem_type, shapes[value.name]))
    return copy


def _has_other_axes(value: onnx.ValueInfoProto, given: Sequence[Any] | None) -> bool:
    tensor = value.type.tensor_type
    return given is not None and tensor.HasField("shape") and len(given) != len(tensor.shape.dim)


def _with_seeds(model: Model) -> Model:
    """The model with a seed for each operator that draws and has none: Relay drew them at import, too."""
    if not isinstance(model, onnx.ModelProto) or not any(_lacks_seed(node) for node in model.graph.node):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if _lacks_seed(node):
            node.attribute.append(onnx.helper.make_attribute("seed", float(np.random.default_rng().random())))
            warnings.warn(
                f"the operator '{node.name or node.op_type}' has no seed: its values are drawn at import, and are the "
                "same in every run of the result",
                stacklevel=4,
            )
    return copy


def _lacks_seed(node: onnx.NodeProto) -> bool:
    return node.op_type in DRAWING and all(attribute.name != "seed" for attribute in node.attribute)
