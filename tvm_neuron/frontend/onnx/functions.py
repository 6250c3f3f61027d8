"""functions: the bodies that the ONNX standard itself gives for operators, and those of the model's own functions."""

from collections.abc import Mapping, Sequence

import onnx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.messages import messages

Names = tuple[tuple[str, str], ...]
Functions = Mapping[tuple[str, str], onnx.FunctionProto]


def model_functions(model: onnx.ModelProto) -> Functions:
    """The functions that the model brings along, by domain and name.

    Raises:
        ModelError: one calls itself, directly or through others.
    """
    found = {(function.domain, function.name): function for function in model.functions}
    ended = set[tuple[str, str]]()
    for name in found:
        _check_ends(found, name, (), ended)
    return found


def _check_ends(functions: Functions, name: tuple[str, str], callers: Names, ended: set[tuple[str, str]]) -> None:
    """`callers` are the functions that have not ended, `ended` those that are known to."""
    if name in callers:
        way = " -> ".join(inner for _, inner in (*callers[callers.index(name) :], name))
        raise ModelError(f"the model's function '{name[1]}' calls itself ({way}), which ONNX has no meaning for")
    if name in ended:
        return
    called = {(part.domain, part.op_type) for part in messages(functions[name]) if isinstance(part, onnx.NodeProto)}
    for inner in sorted(called & functions.keys()):
        _check_ends(functions, inner, (*callers, name), ended)
    ended.add(name)


def schema_of(node: onnx.NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    """The operator's definition in the standard; None for an operator that it lacks."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if not onnx.defs.has(node.op_type, domain):
        return None
    newest = opset if domain == "" else onnx.defs.onnx_opset_version()
    try:
        return onnx.defs.get_schema(node.op_type, newest, domain)
    except onnx.defs.SchemaError:
        return None


def float_defaults(node: onnx.NodeProto, opset: int) -> dict[str, float]:
    """The attributes that are numbers where the node has none: as float32, which is off 0.01 by 2e-8 of it.

    Without the limits of old Clips, the largest float32, which limit nothing.
    """
    schema = schema_of(node, opset)
    if schema is None or node.op_type == "Clip":
        return {}
    defaults = {name: each.default_value for name, each in schema.attributes.items()}
    return {name: each.f for name, each in defaults.items() if each.type == onnx.AttributeProto.FLOAT}


def has_body(node: onnx.NodeProto, opset: int) -> bool:
    """Whether the standard says what the operator means in terms of others."""
    schema = schema_of(node, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def body_of(node: onnx.NodeProto, types: Sequence[onnx.TypeProto], opset: int) -> onnx.FunctionProto | None:
    """The standard's body for a node whose operands have `types`."""
    schema = schema_of(node, opset)
    if schema is None:
        return None
    if schema.has_function:
        version = _newest(schema.function_opset_versions, opset)
        body = _from_bytes(schema.get_function_with_opset_version(version))
        return _with_single_batches(body) if body and node.op_type == "AffineGrid" else body
    if schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, opset)
        encoded = [type_.SerializeToString() for type_ in types]
        return _from_bytes(
            schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), encoded)
        )
    return None


def _with_single_batches(body: onnx.FunctionProto) -> onnx.FunctionProto:
    """AffineGrid's body, which squeezes the rows of each matrix and, since it names no axis, a batch of one as well."""
    for message in messages(body):
        if isinstance(message, onnx.NodeProto) and message.op_type == "Squeeze" and len(message.input) == 1:
            message.input.append("one_1d")
    return body


def bound_body(function: onnx.FunctionProto, node: onnx.NodeProto, opset: int) -> list[onnx.NodeProto]:
    """The function's nodes with the attributes that they refer to filled in from the node, else from the defaults."""
    given = {attribute.name: attribute for attribute in function.attribute_proto}
    schema = schema_of(node, opset)
    if schema is not None:
        given |= {
            name: definition.default_value
            for name, definition in schema.attributes.items()
            if definition.default_value.type != onnx.AttributeProto.UNDEFINED
        }
    given |= {attribute.name: attribute for attribute in node.attribute}
    return [_bound(inner, given) for inner in function.node]


def _bound(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            copy = onnx.AttributeProto()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
            result.attribute.append(copy)
            continue
        result.attribute.append(attribute)
        if attribute.HasField("g"):
            inner = [_bound(each, given) for each in attribute.g.node]
            del result.attribute[-1].g.node[:]
            result.attribute[-1].g.node.extend(inner)
    return result


def _newest(versions: Sequence[int], opset: int) -> int:
    """The newest version that is no newer than the model's operator set, else the oldest there is."""
    fitting = [version for version in versions if version <= opset]
    return max(fitting) if fitting else min(versions)


def _from_bytes(encoded: bytes) -> onnx.FunctionProto | None:
    return onnx.FunctionProto.FromString(encoded) if encoded else None
