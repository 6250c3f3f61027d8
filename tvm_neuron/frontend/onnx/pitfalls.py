"""Forms of ONNX operators that TVM 0.27 imports without a word and computes wrongly; each is refused by name.

A wrong number that nobody can explain is worse than a refusal. An entry goes when the form is converted rightly here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx
from onnx import numpy_helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.importer import node_origins

Check = Callable[[onnx.NodeProto, "_Graph"], str]
"""Why the node is refused, "" if it is not."""


class _Graph:
    def __init__(self, graph: onnx.GraphProto) -> None:
        constants = {proto.name: proto for proto in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                constants[node.output[0]] = node.attribute[0].t
        self.constants: Mapping[str, onnx.TensorProto] = constants
        self.read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}

    def constant(self, node: onnx.NodeProto, position: int) -> Any:
        """The value of a constant operand as an array, None for one that is known at run time only or is left out."""
        name = node.input[position] if position < len(node.input) else ""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _attribute_is(name: str, accepted: Callable[[Any], bool], default: Any, reason: str) -> Check:
    return lambda node, _graph: "" if accepted(_attribute(node, name, default)) else reason


def _one_output(node: onnx.NodeProto, graph: _Graph) -> str:
    extra = [name for name in node.output[1:] if name in graph.read]
    return f"its further output '{extra[0]}' is used" if extra else ""


def _inference_dropout(node: onnx.NodeProto, graph: _Graph) -> str:
    if len(node.input) > 2 and node.input[2]:
        training = graph.constant(node, 2)
        if training is None or training.any():
            return "its training_mode is on, or known at run time only"
    return _one_output(node, graph)


def _constant_limits(node: onnx.NodeProto, graph: _Graph) -> str:
    given = [position for position in (2, 3, 4) if position < len(node.input) and node.input[position]]
    return "" if all(graph.constant(node, p) is not None for p in given) else "its limits are known at run time only"


_PITFALLS: Mapping[str, Check] = {
    "AveragePool": _attribute_is("dilations", lambda d: all(step == 1 for step in d), (), "it is dilated"),
    "BatchNormalization": _attribute_is("training_mode", lambda mode: mode == 0, 0, "it is in training mode"),
    "ConvTranspose": _attribute_is("output_shape", lambda shape: not shape, (), "it gives output_shape; give pads"),
    "Dropout": _inference_dropout,
    "IsInf": lambda node, _graph: (
        "" if _attribute(node, "detect_negative", 1) and _attribute(node, "detect_positive", 1) else
        "it looks for infinities of one sign only"
    ),
    "LayerNormalization": _one_output,
    "NonMaxSuppression": _constant_limits,
    "RoiAlign": _attribute_is("mode", lambda mode: mode != b"max", b"avg", "its mode is max"),
    "SpaceToDepth": _attribute_is("mode", lambda mode: mode == b"DCR", b"DCR", "its mode is CRD"),
    "SplitToSequence": _attribute_is("keepdims", lambda keep: keep == 1, 1, "its keepdims is 0"),
}  # fmt: skip


def check_pitfalls(graph: onnx.GraphProto) -> None:
    """Refuses the forms that would come out wrong.

    Raises:
        ModelError: names the operators, and what about each can't be imported.
    """
    found = list(_refused(graph))
    if found:
        raise ModelError(f"TVM's importer would compute these operators wrongly: {'; '.join(found)}")


def _refused(graph: onnx.GraphProto) -> Iterator[str]:
    known = _Graph(graph)
    nodes = list(graph.node)
    for node, origin in zip(nodes, node_origins(nodes), strict=True):
        reason = _PITFALLS[node.op_type](node, known) if node.op_type in _PITFALLS else ""
        if reason:
            yield f"{origin}: {reason}"
