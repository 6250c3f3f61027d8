"""What a model file must be before it is imported; each check raises one ModelError that says what to do."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import ArrayLike
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.bits import BITS_DOMAIN
from tvm_neuron.frontend.by_hand import KERNEL_DOMAIN
from tvm_neuron.frontend.drawing import DRAW_DOMAIN
from tvm_neuron.frontend.onnx.converters import CONVERTERS
from tvm_neuron.frontend.onnx.functions import has_body
from tvm_neuron.frontend.onnx.graphs import real_inputs
from tvm_neuron.frontend.onnx.messages import broken_texts
from tvm_neuron.frontend.onnx.microsoft import MICROSOFT
from tvm_neuron.frontend.onnx.model_file import Stored, read_model_file
from tvm_neuron.frontend.onnx.recurrent import RECURRENT
from tvm_neuron.frontend.onnx.sequences import SEQUENCE_OPERATORS

_INTEGERS = tuple(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_SMALL = (
    "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1", "INT4", "UINT4",
    "INT2", "UINT2",
)  # fmt: skip
_SUPPORTED = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", *_INTEGERS, "BOOL", *_SMALL)
_RESOLVED = {"Constant", "If", "Loop", "Scan"}
_SUPPORTED_TYPES = {getattr(onnx.TensorProto, name) for name in _SUPPORTED}


class NeedsShapeError(ModelError):
    """The shape of an input must be given; `input` names it."""

    code = "NCC101"

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.input = name


class UnknownOperatorsError(ModelError):
    """The model holds operators that nothing knows."""

    code = "NCC103"


def load_model(model: onnx.ModelProto | str | os.PathLike[str]) -> tuple[onnx.ModelProto, Stored]:
    """The model itself, or the one read from a path and those of its weights that are still in the file."""
    if isinstance(model, onnx.ModelProto):
        return model, {}
    if not isinstance(model, str | os.PathLike):
        hint = ": read bytes with onnx.load_model_from_string" if isinstance(model, bytes | bytearray) else ""
        raise ModelError(f"from_onnx takes a ModelProto or the path of a file, got {type(model).__name__}{hint}")
    path = Path(model)
    if not os.path.isfile(path):  # which also knows that a name may be too long
        raise ModelError(f"{path}: {'a folder, not an ONNX file' if os.path.isdir(path) else 'no such file'}")
    try:
        loaded, stored = read_model_file(path)
    except DecodeError as error:
        raise ModelError(f"{path}: not an ONNX file") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{path}: can't be read: {error}") from error
    if not loaded.ir_version or not loaded.HasField("graph"):
        raise ModelError(f"{path}: not an ONNX file")
    return loaded, stored


def check_texts(model: onnx.ModelProto) -> None:
    """All names are texts."""
    for message, field in broken_texts(model):
        raise ModelError(f"the model is damaged: the {field} of a {type(message).__name__} is not UTF-8")


def check_opset(model: onnx.ModelProto, opset: int | None) -> int:
    """The version of the default operator set, or `opset` if given; newer than the onnx package is refused."""
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    version = opset if opset is not None else (versions[0] if versions else 1)
    newest = onnx.defs.onnx_opset_version()
    if not isinstance(version, int | np.integer):
        raise ModelError(f"opset is {version!r}; it must be a whole number, or left out")
    if not 1 <= version <= newest:
        raise ModelError(
            f"opset {version} is unknown: onnx {onnx.__version__} knows 1 to {newest}; "
            "convert the model with onnx.version_converter, or install a newer onnx"
        )
    return int(version)


def check_dtypes(graph: onnx.GraphProto) -> None:
    """Inputs, outputs and initializers hold dtypes that the compiler carries."""
    values = [("input", v.name, v.type.tensor_type.elem_type) for v in graph.input]
    values += [("output", v.name, v.type.tensor_type.elem_type) for v in graph.output]
    values += [("initializer", v.name, v.data_type) for v in graph.initializer]
    if untyped := [v.name for v in graph.input if v.type.HasField("tensor_type") and not v.type.tensor_type.elem_type]:
        raise ModelError(f"input '{untyped[0]}' has no dtype in the model")
    for kind, name, elem_type in values:
        if elem_type and elem_type not in _SUPPORTED_TYPES:
            names = dict(map(reversed, onnx.TensorProto.DataType.items()))
            found = names.get(elem_type, f"number {elem_type}").lower()
            supported = ", ".join(name.lower() for name in _SUPPORTED)
            raise ModelError(f"{kind} '{name}' has dtype {found}, which is not supported; supported: {supported}")


def check_given_dtypes(graph: onnx.GraphProto, dtype: str | dict[str, str]) -> dict[str, str]:
    """The dtypes given for inputs by name; a string for all of them changes nothing, since ONNX inputs have one."""
    given = dtype if isinstance(dtype, dict) else {}
    names = [value.name for value in real_inputs(graph)]
    supported = {onnx.helper.tensor_dtype_to_np_dtype(elem_type).name for elem_type in _SUPPORTED_TYPES}
    for name, found in [*given.items(), *([("all", dtype)] if isinstance(dtype, str) else [])]:
        if name not in names and isinstance(dtype, dict):
            raise ModelError(f"dtype is given for '{name}', but the model's inputs are: {', '.join(names)}")
        if found not in supported:
            known = ", ".join(sorted(supported))
            raise ModelError(f"dtype '{found}' given for {name} is not supported; supported: {known}")
    return given


def check_wiring(graph: onnx.GraphProto) -> None:
    """Every operator reads values made before it, and every output of the graph is made."""
    made = {value.name for value in graph.input} | {proto.name for proto in graph.initializer} | {""}
    for node in graph.node:
        for name in node.input:
            if name not in made:
                raise ModelError(
                    f"operator '{node.name}' ({node.op_type}) reads '{name}', which nothing before it makes"
                )
        made.update(node.output)
    if not graph.output:
        raise ModelError("the model has no outputs")
    for value in graph.output:
        if value.name not in made:
            raise ModelError(f"output '{value.name}' is made by no operator of the model")


def check_values(graph: onnx.GraphProto, values: Mapping[str, ArrayLike] | None) -> dict[str, np.ndarray]:
    """The values given for inputs, as arrays of the inputs' dtypes."""
    inputs = {value.name: value for value in real_inputs(graph)}
    found = {}
    for name, given in (values or {}).items():
        if name not in inputs:
            raise ModelError(f"a value is given for '{name}', but the model's inputs are: {', '.join(inputs)}")
        tensor = inputs[name].type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        try:
            array = np.asarray(given)
        except ValueError as error:  # rows of different lengths, too many dimensions
            raise ModelError(f"the value given for '{name}' is no array: {error}") from error
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ModelError(f"the value given for '{name}' has dtype {array.dtype}; the model wants {dtype}")
        if tensor.HasField("shape"):
            dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
            if len(dims) != array.ndim or any(d not in (None, n) for d, n in zip(dims, array.shape, strict=True)):
                wanted = [dim if dim is not None else "?" for dim in dims]
                raise ModelError(
                    f"the value given for '{name}' has shape {list(array.shape)}; the model wants {wanted}"
                )
        found[name] = array.astype(dtype)
    return found


def check_operators(model: onnx.ModelProto, opset: int) -> None:
    """Every operator, also of subgraphs, has a converter or a body; all that have none are named at once."""
    ours = (CONVERTERS, SEQUENCE_OPERATORS, RECURRENT, MICROSOFT)
    known = set(_get_convert_map()).union(_RESOLVED, *ours)
    own = {function.name for function in model.functions}
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    foreign = [node for node in _with_inner(nodes) if node.domain not in (KERNEL_DOMAIN, DRAW_DOMAIN, BITS_DOMAIN)]
    unknown = sorted({n.op_type for n in foreign if n.op_type not in known | own and not has_body(n, opset)})
    if unknown:
        raise UnknownOperatorsError(
            f"the model holds operators that can't be imported: {', '.join(unknown)}. No converter knows them, and the "
            "ONNX standard has no body of simpler operators for them. Cut them off the model "
            "(onnx.utils.extract_model) and compute them outside, or define them as functions of the model"
        )


def _with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _with_inner(attribute.g.node)


def check_shapes(
    graph: onnx.GraphProto, shape: dict[str, tuple[int, ...]] | None, known: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, ...]]:
    """The static shape of every input that is not `known`: from `shape` where given there, else from the model."""
    given = {
        name: tuple(_size(name, axis, dim) for axis, dim in enumerate(dims)) for name, dims in (shape or {}).items()
    }
    inputs = real_inputs(graph)
    names = [value.name for value in inputs]
    weights = {tensor.name for tensor in graph.initializer}  # which have their shapes
    if unknown := sorted(set(given) - set(names) - weights):
        raise ModelError(f"shape is given for '{unknown[0]}', but the model's inputs are: {', '.join(names)}")
    return {value.name: _static_shape(value, given.get(value.name)) for value in inputs if value.name not in known}


def _size(name: str, axis: int, dim: Any) -> int:
    try:
        return int(dim)
    except (TypeError, ValueError):  # such as relay.Any()
        message = f"input '{name}': the given shape has '{dim}' at axis {axis}; give a size, one import for each"
        raise NeedsShapeError(message, name) from None


def _static_shape(value: onnx.ValueInfoProto, given: tuple[int, ...] | None) -> tuple[int, ...]:
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value")
        raise ModelError(f"input '{value.name}' is a {str(kind).removesuffix('_type')}; only tensors can be inputs")
    has_rank = value.type.tensor_type.HasField("shape")
    dims = list(value.type.tensor_type.shape.dim)
    if given is not None:
        if has_rank and len(given) != len(dims):
            raise ModelError(f"input '{value.name}' has {len(dims)} axes, but the given shape {given} has {len(given)}")
        if any(dim < 0 for dim in given):
            raise ModelError(f"input '{value.name}': the given shape {given} must hold sizes of at least 0")
        return given
    if not has_rank:
        raise NeedsShapeError(
            f"input '{value.name}' has no shape in the model; give it: shape={{'{value.name}': (1, ...)}}", value.name
        )
    for axis, dim in enumerate(dims):
        if not dim.HasField("dim_value") or dim.dim_value < 0:
            label = f"'{dim.dim_param}' " if dim.dim_param else ""
            example = tuple(d.dim_value if d.dim_value > 0 else 1 for d in dims)
            sizes = list(example)
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            raise NeedsShapeError(
                f"input '{value.name}' has the dynamic dimension {label}at axis {axis}; "
                f"give its size: shape={{'{value.name}': {example}}}, "
                f'or on the command line --io-config \'{{"inputs": {{"{value.name}": [{sizes}, "{dtype}"]}}}}\'',
                value.name,
            )
    return tuple(int(dim.dim_value) for dim in dims)
