"""Small questions about ONNX nodes: which names they read, what they are called, which types their operands have."""

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of
from tvm_neuron.frontend.origin import Origin


def real_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The inputs without the initializers, which models of IR version 3 list as inputs too."""
    initializers = {proto.name for proto in graph.initializer}
    return [value for value in graph.input if value.name not in initializers]


def node_origins(nodes: Sequence[onnx.NodeProto], prefix: str = "") -> list[Origin]:
    """One origin per node; nodes without a name, or with one already taken, are named `<op type>_<index>`."""
    taken: set[str] = set()
    origins = []
    for index, node in enumerate(nodes):
        name = prefix + (node.name if node.name else f"{node.op_type}_{index}")
        if name in taken:
            name = f"{prefix}{node.op_type}_{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        origins.append(Origin(name, node.op_type))
    return origins


def read_names(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Every name that the nodes read, their subgraphs included."""
    found: set[str] = set()
    for node in nodes:
        found.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= read_names(attribute.g.node) | {output.name for output in attribute.g.output}
    return found


def without_unread_outputs(node: onnx.NodeProto, read: set[str]) -> onnx.NodeProto:
    """The node without the further outputs that nothing reads, so that an optional output counts only if it is used.

    Of one with any number of outputs all stay: their number says what each of them is.
    """
    if len(node.output) < 2 or all(name in read for name in node.output[1:]) or _has_any_number_of_outputs(node):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    kept = [name if index == 0 or name in read else "" for index, name in enumerate(node.output)]
    while len(kept) > 1 and not kept[-1]:
        kept.pop()
    del copy.output[:]
    copy.output.extend(kept)
    return copy


def _has_any_number_of_outputs(node: onnx.NodeProto) -> bool:
    """As Split and Loop have."""
    if not onnx.defs.has(node.op_type, node.domain):
        return False
    outputs = onnx.defs.get_schema(node.op_type, node.domain).outputs
    return bool(outputs) and outputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic


def types_of(operands: Sequence[Value]) -> list[onnx.TypeProto]:
    """The ONNX types of operands; an empty one for an operand left out."""
    return [_type_of(value) for value in operands]


def _type_of(value: Value) -> onnx.TypeProto:
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type_of(value[0])) if value else onnx.TypeProto()
    dtype = value.array.dtype if isinstance(value, Known) else np.dtype(dtype_of(value))
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), shape_of(value))
