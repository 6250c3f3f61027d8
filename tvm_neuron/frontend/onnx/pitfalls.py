"""Forms of ONNX operators that TVM 0.27 imports without a word and computes wrongly.

A wrong number that nobody can explain is worse than a refusal: such a form is expanded by the operator's body in the
standard if it has one, else refused by name. An entry goes when the form is converted rightly here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

KnownValue = Callable[[str], np.ndarray | None]
"""The array behind a name, None if it is known at run time only."""

Check = Callable[[onnx.NodeProto, KnownValue], str]
"""Why TVM's converter is wrong for the node, "" if it is not."""


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _attribute_is(name: str, accepted: Callable[[Any], bool], default: Any, reason: str) -> Check:
    return lambda node, _known: "" if accepted(_attribute(node, name, default)) else reason


def _one_output(node: onnx.NodeProto, _known: KnownValue) -> str:
    extra = [name for name in node.output[1:] if name]
    return f"its further output '{extra[0]}' is used" if extra else ""


_PITFALLS: Mapping[str, Check] = {
    "LayerNormalization": _one_output,
    "RoiAlign": _attribute_is("mode", lambda mode: mode != b"max", b"avg", "its mode is max"),
}  # fmt: skip

_BODY_FIRST = {
    "AffineGrid", "Attention", "RMSNormalization",
    "Range", "ReduceL1", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ThresholdedRelu",
}  # fmt: skip


def pitfall(node: onnx.NodeProto, known: KnownValue) -> str:
    """Why TVM's converter would compute this node wrongly; "" if it would not."""
    return _PITFALLS[node.op_type](node, known) if node.op_type in _PITFALLS else ""


def prefers_body(node: onnx.NodeProto) -> bool:
    """Whether the operator's body in the standard serves better than TVM's converter, in any form."""
    return node.op_type in _BODY_FIRST
