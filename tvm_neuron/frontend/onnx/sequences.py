"""Sequences and optionals, resolved at import: a sequence is a Python list of values, an empty optional is None."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.values import Known, Value, shape_of

MakeNode = Callable[..., Value]
"""(op type, operands, **attributes) to the value of a further primitive node."""


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), default)


def _position(items: list[Value], at: Value, room: int) -> int:
    """A position in a sequence, counted from its end if negative."""
    index = int(at.array.reshape(())) if at is not None else len(items)
    if not -len(items) <= index < len(items) + room:
        raise ModelError(f"position {index} in a sequence of {len(items)}")
    return index + len(items) if index < 0 else index


def _insert(_node: onnx.NodeProto, operands: list[Value], _make: MakeNode) -> Value:
    items = list(operands[0])
    items.insert(_position(items, operands[2] if len(operands) > 2 else None, 1), operands[1])
    return items


def _erase(_node: onnx.NodeProto, operands: list[Value], _make: MakeNode) -> Value:
    items = list(operands[0])
    at = operands[1] if len(operands) > 1 else Known(np.array(-1))
    del items[_position(items, at, 0)]
    return items


def _split(node: onnx.NodeProto, operands: list[Value], make: MakeNode) -> Value:
    shape = shape_of(operands[0])
    if shape is None:
        raise ModelError("the shape of what it splits is not known at compile time")
    axis = _attribute(node, "axis", 0) % len(shape)
    split = operands[1].array if len(operands) > 1 and operands[1] is not None else np.array(1)
    each = np.full(-(-shape[axis] // int(split)), int(split)) if split.ndim == 0 else split
    ends = np.minimum(np.cumsum(each), shape[axis])
    starts = np.concatenate([[0], ends[:-1]])
    drops = len(operands) < 2 and not _attribute(node, "keepdims", 1)
    parts = []
    for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
        bounds = [Known(np.array([value], np.int64)) for value in (low, high, axis)]
        part = make("Slice", [operands[0], *bounds])
        parts.append(make("Squeeze", [part, Known(np.array([axis], np.int64))]) if drops else part)
    return parts


def _concat(node: onnx.NodeProto, operands: list[Value], make: MakeNode) -> Value:
    axis, items = _attribute(node, "axis", 0), operands[0]
    if _attribute(node, "new_axis", 0):
        items = [make("Unsqueeze", [item, Known(np.array([axis], np.int64))]) for item in items]
    return make("Concat", items, axis=axis) if len(items) > 1 else make("Identity", items)


def _element(_node: onnx.NodeProto, operands: list[Value], _make: MakeNode) -> Value:
    if operands[0] is None:
        raise ModelError("it takes the element of an empty optional")
    return operands[0]


_Resolve = Callable[[onnx.NodeProto, list[Value], MakeNode], Value]

SEQUENCE_OPERATORS: dict[str, _Resolve] = {
    "SequenceEmpty": lambda _node, _operands, _make: [],
    "SequenceConstruct": lambda _node, operands, _make: list(operands),
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceAt": lambda _node, operands, _make: operands[0][_position(operands[0], operands[1], 0)],
    "SequenceLength": lambda _node, operands, _make: Known(np.array(len(operands[0]), np.int64)),
    "SplitToSequence": _split,
    "ConcatFromSequence": _concat,
    "Optional": lambda _node, operands, _make: operands[0] if operands else None,
    "OptionalHasElement": lambda _node, operands, _make: Known(np.array(bool(operands) and operands[0] is not None)),
    "OptionalGetElement": _element,
}
"""By operator: (node, operands, maker of further nodes) to its one result."""
