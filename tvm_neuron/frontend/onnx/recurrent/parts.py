"""Parts of tensors, as nodes: slices along an axis, and joining along a new one."""

import numpy as np

from tvm_neuron.frontend.onnx.sequences import MakeNode
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of


def transposed(make: MakeNode, value: Value, perm: list[int]) -> Value:
    """The value with its axes in the order `perm`."""
    return make("Transpose", [value], perm=perm)


def cut(make: MakeNode, value: Value, axis: int, low: int, high: int) -> Value:
    """The elements from `low` to `high` of an axis."""
    bounds = [Known(np.array([number], np.int64)) for number in (low, high, axis)]
    return make("Slice", [value, *bounds])


def only(make: MakeNode, value: Value, index: int) -> Value:
    """value[index] along the first axis."""
    return make("Squeeze", [cut(make, value, 0, index, index + 1), Known(np.array([0]))])


def stacked(make: MakeNode, values: list[Value], axis: int) -> Value:
    """The values joined along a new axis."""
    widened = [make("Unsqueeze", [value, Known(np.array([axis]))]) for value in values]
    return make("Concat", widened, axis=axis) if len(widened) > 1 else widened[0]


def like(value: Value, number: int) -> Value:
    """A number in the dtype of the value."""
    return Known(np.array(number, dtype_of(value)))
